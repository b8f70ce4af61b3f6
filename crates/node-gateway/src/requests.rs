//! Requests of nodes, read and checked.

use admission::nodes::registration::check;
use admission::nodes::reports::{self, Reports};
use model::{AllocClient, FieldErrors, Node};
use proto::internal::v1::{RegisterNodeRequest, ReportAllocationsRequest};

/// Returns the size of a report as it is stored; 0: it cannot be encoded, and is refused when it is
/// put in a transaction.
pub(crate) fn stored_size(client: &AllocClient) -> usize {
    let encoded = store::Value::from(client).encode();
    encoded.map_or(0, |encoded| encoded.len())
}

/// Reads and checks the record of a node.
///
/// # Errors
/// All invalid fields.
pub(crate) fn read_node(request: RegisterNodeRequest) -> Result<Node, FieldErrors> {
    let Some(node) = request.node else {
        let mut errors = FieldErrors::default();
        errors.push("node", "missing: want the node's record");
        return Err(errors);
    };
    let node = Node {
        secret: request.secret,
        ..node.try_into()?
    };
    check(&node)?;
    Ok(node)
}

/// Reads the reports; of several reports of one allocation the last wins.
///
/// # Errors
/// All invalid fields.
pub(crate) fn read_reports(request: &ReportAllocationsRequest) -> Result<Reports, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut reports = Reports::new();
    for (position, report) in request.reports.iter().enumerate() {
        let at = format!("reports[{position}]");
        let alloc_id = report
            .alloc_id
            .parse()
            .map_err(|error: model::ids::InvalidId| {
                errors.push(format!("{at}.alloc_id"), error.to_string());
            });
        let client = match report.client.clone().map(AllocClient::try_from) {
            Some(Ok(client)) => Some(client),
            Some(Err(found)) => {
                let placed = found.0.into_iter().map(|mut error| {
                    error.field = format!("{at}.{}", error.field);
                    error
                });
                errors.0.extend(placed);
                None
            }
            None => {
                errors.push(
                    format!("{at}.client"),
                    "missing: want the allocation's client side",
                );
                None
            }
        };
        if let (Ok(alloc_id), Some(client)) = (alloc_id, client) {
            reports::add(&mut reports, alloc_id, client);
        }
    }
    errors.into_result(reports)
}
