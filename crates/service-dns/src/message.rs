//! One request and its response.
//!
//! Source: RFC 1035; RFC 2782 for SRV; RFC 2308 for answers without data; RFC 6891 for EDNS.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA, SRV};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use service_kit::IdSource;
use service_watch::{Answer, Instance, ServiceName, Services};

use crate::config::DnsConfig;
use crate::metrics::DnsMetrics;
use crate::question::{self, Question};
use crate::reply::{self, Locality, RecordKind};

/// Wait for a gateway's first answer: well within the five seconds after which resolvers ask again.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The largest response over UDP that is not fragmented. Source: DNS Flag Day 2020.
const UDP_MAX: u16 = 1_232;
/// Length of a header; shorter requests have no number to answer to.
const HEADER_BYTES: usize = 12;

/// The node that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalNode {
    pub node_id: String,
    pub datacenter: String,
}

/// The zone of a node's services.
#[derive(Clone, Debug)]
pub struct Zone {
    services: Arc<Services>,
    node: LocalNode,
    /// In lower case.
    domain: Name,
    labels: Vec<String>,
    /// In seconds.
    ttl: u32,
    ids: IdSource,
    pub(crate) metrics: DnsMetrics,
}

/// The transport of a request, which limits the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// A response without its header.
struct Body {
    code: ResponseCode,
    answers: Vec<Record>,
    additionals: Vec<Record>,
}

impl Body {
    fn of(code: ResponseCode) -> Self {
        Self {
            code,
            answers: Vec::new(),
            additionals: Vec::new(),
        }
    }

    fn with(answers: Vec<Record>) -> Self {
        Self {
            answers,
            ..Self::of(ResponseCode::NoError)
        }
    }
}

impl Zone {
    /// The zone of `config`, which has been checked.
    pub fn new(
        config: &DnsConfig,
        services: Arc<Services>,
        node: LocalNode,
        ids: IdSource,
        metrics: DnsMetrics,
    ) -> Self {
        let domain = config.domain.to_ascii_lowercase();
        let name = Name::from_ascii(format!("{domain}.")).unwrap_or_default();
        Self {
            services,
            node,
            domain: name,
            labels: domain.split('.').map(str::to_owned).collect(),
            ttl: u32::try_from(config.ttl.as_secs()).unwrap_or(u32::MAX),
            ids,
            metrics,
        }
    }

    /// Answers a request; `None`: it gets no response.
    pub(crate) async fn respond(&self, request: &[u8], transport: Transport) -> Option<Vec<u8>> {
        self.metrics.queries.inc();
        let request = match Message::from_vec(request) {
            Ok(request) if request.metadata.message_type == MessageType::Query => request,
            // An answer to a response could go on without end.
            Ok(_) => return None,
            Err(_) => return malformed(request),
        };
        let mut response = self.response(&request).await;
        if let Some(edns) = &request.edns {
            let mut own = Edns::new();
            own.set_max_payload(UDP_MAX);
            if edns.version() > 0 {
                response.metadata.response_code = ResponseCode::BADVERS;
                own.set_rcode_high(ResponseCode::BADVERS.high());
            }
            response.set_edns(own);
        }
        let limit = match transport {
            Transport::Udp => usize::from(request.max_payload().min(UDP_MAX)),
            Transport::Tcp => usize::from(u16::MAX),
        };
        let bytes = response.to_vec().ok()?;
        if bytes.len() <= limit {
            return Some(bytes);
        }
        // The client asks again over TCP.
        response.truncate().to_vec().ok()
    }

    async fn response(&self, request: &Message) -> Message {
        let metadata = Metadata::response_from_request(&request.metadata);
        let mut response = Message::response(metadata.id, metadata.op_code);
        response.metadata = metadata;
        let mut fail = |code| {
            response.metadata.response_code = code;
            response.clone()
        };
        if request.metadata.op_code != OpCode::Query {
            return fail(ResponseCode::NotImp);
        }
        let [query] = request.queries.as_slice() else {
            return fail(ResponseCode::FormErr);
        };
        response.add_query(query.clone());
        let is_internet = matches!(query.query_class(), DNSClass::IN | DNSClass::ANY);
        let labels = self.below(query.name()).filter(|_| is_internet);
        let body = match labels {
            Some(labels) => {
                response.metadata.authoritative = true;
                self.body(query.name(), query.query_type(), &labels).await
            }
            None => Body::of(ResponseCode::Refused),
        };
        match body.code {
            ResponseCode::Refused => self.metrics.refusals.inc(),
            ResponseCode::ServFail => self.metrics.failures.inc(),
            _ => 0,
        };
        if matches!(body.code, ResponseCode::Refused | ResponseCode::ServFail) {
            response.metadata.authoritative = false;
        } else if body.answers.is_empty() {
            response.add_authority(self.start_of_authority());
        }
        response.metadata.response_code = body.code;
        response.add_answers(body.answers);
        response.add_additionals(body.additionals);
        response
    }

    /// Returns the labels before the domain, in lower case; `None`: the name is not in the zone.
    fn below(&self, name: &Name) -> Option<Vec<String>> {
        let label = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let mut labels: Vec<String> = name.iter().map(label).collect();
        let before = labels.len().checked_sub(self.labels.len())?;
        (labels.split_off(before) == self.labels).then_some(labels)
    }

    async fn body(&self, owner: &Name, kind: RecordType, labels: &[String]) -> Body {
        match question::read(labels) {
            Question::Apex if matches!(kind, RecordType::SOA | RecordType::ANY) => {
                Body::with(vec![self.start_of_authority()])
            }
            Question::Apex | Question::Branch => Body::of(ResponseCode::NoError),
            Question::Unknown => Body::of(ResponseCode::NXDomain),
            Question::Address(address) => {
                let data = Some(address_data(address))
                    .filter(|data| kind == RecordType::ANY || kind == data.record_type());
                let record = data.map(|data| self.record(owner, data));
                Body::with(record.into_iter().collect())
            }
            Question::Service {
                name,
                tag,
                datacenter,
            } => {
                let filters = (tag.as_deref(), datacenter.as_deref());
                self.service(owner, kind, &name, filters).await
            }
        }
    }

    async fn service(
        &self,
        owner: &Name,
        kind: RecordType,
        name: &ServiceName,
        filters: (Option<&str>, Option<&str>),
    ) -> Body {
        let found = match self.services.look_up(name, ANSWER_LIMIT).await {
            Ok(Answer::Instances(found)) => found,
            Ok(Answer::Refused(_)) => {
                // Names that the node may not see do not exist for it.
                self.metrics.refusals.inc();
                return Body::of(ResponseCode::NXDomain);
            }
            Err(_) => return Body::of(ResponseCode::ServFail),
        };
        if found.is_empty() {
            return Body::of(ResponseCode::NXDomain);
        }
        let kind = match kind {
            RecordType::A => RecordKind::V4,
            RecordType::AAAA => RecordKind::V6,
            RecordType::ANY => RecordKind::Any,
            RecordType::SRV => RecordKind::Srv,
            _ => return Body::of(ResponseCode::NoError),
        };
        let locality = Locality {
            node_id: &self.node.node_id,
            datacenter: &self.node.datacenter,
        };
        let chosen = reply::choose(&found, filters, kind, locality, &mut self.ids.rng());
        if kind == RecordKind::Srv {
            return self.srv(owner, &chosen);
        }
        let parsed = chosen.iter().filter_map(|it| it.address.parse().ok());
        let addresses: Vec<IpAddr> = parsed.collect();
        if !addresses.is_empty() {
            let records = addresses.into_iter().map(address_data);
            return Body::with(records.map(|data| self.record(owner, data)).collect());
        }
        // A name has one alias at most.
        let alias = chosen.iter().find_map(|it| host_name(&it.address));
        let record = alias.map(|alias| self.record(owner, RData::CNAME(CNAME(alias))));
        Body::with(record.into_iter().collect())
    }

    /// Returns the SRV records, and the addresses of their targets.
    fn srv(&self, owner: &Name, chosen: &[&Instance]) -> Body {
        let mut body = Body::of(ResponseCode::NoError);
        for instance in chosen {
            let address: Option<IpAddr> = instance.address.parse().ok();
            let target = match address {
                Some(address) => self.target(&instance.node_name, address),
                None => host_name(&instance.address),
            };
            let Some(target) = target else { continue };
            // The same for all: the order is a preference, and clients spread over all of them.
            let srv = SRV::new(1, 1, instance.port, target.clone());
            body.answers.push(self.record(owner, RData::SRV(srv)));
            if let Some(address) = address {
                let record = self.record(&target, address_data(address));
                if !body.additionals.contains(&record) {
                    body.additionals.push(record);
                }
            }
        }
        body
    }

    /// Returns the name of an address on a node.
    fn target(&self, node_name: &str, address: IpAddr) -> Option<Name> {
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
            _ => '-',
        };
        let node: String = node_name.chars().map(plain).take(63).collect();
        let node = node.trim_matches('-');
        let node = if node.is_empty() { "node" } else { node };
        let name = format!("{node}.{}.addr", question::to_hex(address));
        let name = Name::from_ascii(name).ok()?;
        name.append_domain(&self.domain).ok()
    }

    fn record(&self, owner: &Name, data: RData) -> Record {
        Record::from_rdata(owner.clone(), self.ttl, data)
    }

    fn start_of_authority(&self) -> Record {
        let named = |label: &str| {
            let name = self.domain.prepend_label(label);
            name.unwrap_or_else(|_| self.domain.clone())
        };
        // There is no second server, so the times of transfers say nothing.
        let soa = SOA::new(
            named("ns"),
            named("hostmaster"),
            1,
            3_600,
            600,
            86_400,
            self.ttl,
        );
        self.record(&self.domain, RData::SOA(soa))
    }
}

fn address_data(address: IpAddr) -> RData {
    match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    }
}

fn host_name(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    (!name.is_root()).then_some(name)
}

fn malformed(request: &[u8]) -> Option<Vec<u8>> {
    let header = request.get(..HEADER_BYTES)?;
    let is_response = header[2] & 0x80 != 0;
    if is_response {
        return None;
    }
    let id = u16::from_be_bytes([header[0], header[1]]);
    let message = Message::error_msg(id, OpCode::Query, ResponseCode::FormErr);
    message.to_vec().ok()
}

#[cfg(test)]
mod tests;
