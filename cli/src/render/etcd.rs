//! Members of etcd.

use model::etcd::{Bytes, percent};
use proto::v1;

use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn status(status: &v1::GetEtcdStatusResponse) -> String {
    let mut table = Table::new([
        "Member", "Version", "Role", "Size", "In Use", "Quota", "Status",
    ]);
    let mut members = status.members.iter();
    let has_leader = status.revision > 0 || members.any(|member| member.is_leader);
    for member in &status.members {
        if !member.error.is_empty() {
            let cells = [&member.endpoint, "", "", "", "", "", &member.error];
            table.row(cells.map(str::to_owned));
            continue;
        }
        table.row([
            member.endpoint.clone(),
            member.version.clone(),
            match member.is_leader {
                true => "leader",
                false if has_leader => "follower",
                // Without a majority of the members there is none.
                false => "no leader",
            }
            .to_owned(),
            of_quota(member.db_bytes, member.quota_bytes),
            of_quota(member.in_use_bytes, member.quota_bytes),
            match member.quota_bytes {
                0 => "unlimited".to_owned(),
                bytes => Bytes(bytes).to_string(),
            },
            if member.no_space { "NOSPACE" } else { "ok" }.to_owned(),
        ]);
    }
    let mut fields = Fields::new();
    fields.add(
        "Revision",
        match status.revision {
            0 => "unknown: etcd does not answer reads".to_owned(),
            revision => revision.to_string(),
        },
    );
    let is_refused = !status.refusal.is_empty();
    let new_work = match status.revision {
        _ if is_refused => "refused",
        0 => "unknown: etcd does not answer",
        _ => "accepted",
    };
    fields.add("New Work", new_work);
    let mut text = format!("{}\n{}", fields.render(), table.render());
    if is_refused {
        text.push_str(&format!("\n{}\n", status.refusal));
    }
    text
}

fn of_quota(bytes: u64, quota: u64) -> String {
    match quota {
        0 => Bytes(bytes).to_string(),
        quota => format!("{} ({} %)", Bytes(bytes), percent(bytes, quota)),
    }
}

pub(crate) fn defragmented(endpoint: &str, done: &v1::DefragmentEtcdResponse) -> String {
    format!(
        "{endpoint}: {} before, {} after",
        Bytes(done.db_bytes_before),
        Bytes(done.db_bytes_after)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_member_differs_from_an_unreachable_one() {
        let full = v1::EtcdMember {
            endpoint: "http://10.0.0.1:2379".to_owned(),
            version: "3.5.30".to_owned(),
            is_leader: true,
            db_bytes: 2 << 30,
            in_use_bytes: 1 << 30,
            quota_bytes: 2 << 30,
            no_space: true,
            error: String::new(),
        };
        let away = v1::EtcdMember {
            endpoint: "http://10.0.0.2:2379".to_owned(),
            error: "no answer came".to_owned(),
            ..Default::default()
        };
        let text = status(&v1::GetEtcdStatusResponse {
            members: vec![full, away],
            revision: 7,
            refusal: "etcd is full".to_owned(),
        });
        for part in [
            "New Work = refused",
            "2.0 GiB (100 %)",
            "1.0 GiB (50 %)",
            "NOSPACE",
            "no answer came",
            "etcd is full",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let silent = status(&v1::GetEtcdStatusResponse::default());
        assert!(silent.contains("Revision = unknown"), "{silent}");
        assert!(silent.contains("New Work = unknown"), "{silent}");
        let well = v1::GetEtcdStatusResponse {
            revision: 7,
            ..Default::default()
        };
        assert!(status(&well).contains("New Work = accepted"));
    }

    #[test]
    fn a_member_without_a_majority_is_no_follower() {
        let alone = v1::EtcdMember {
            endpoint: "http://10.0.0.1:2379".to_owned(),
            version: "3.5.30".to_owned(),
            ..v1::EtcdMember::default()
        };
        let with_revision = |revision| {
            status(&v1::GetEtcdStatusResponse {
                revision,
                members: vec![alone.clone()],
                ..v1::GetEtcdStatusResponse::default()
            })
        };
        assert!(with_revision(0).contains("no leader"));
        assert!(with_revision(7).contains("follower"));
    }
}
