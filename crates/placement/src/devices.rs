//! Devices: what a task asks for, and which instances of a node it gets.
//!
//! One function says both whether a node can serve the asks of a group at all and which instances
//! it gives: asked with nothing held, it is the first question. Two would disagree.

use std::borrow::Cow;
use std::cmp::Ordering;

use model::job::DeviceRequest;
use model::node::NodeDevice;
use model::{Affinity, Constraint, Node, Operator};
use state::held::DeviceRef;

use crate::check::compare_texts;
use crate::exclusive::Holds;
use crate::quantity::Quantity;

/// How many ways are tried to serve the asks of one group on one node: more than there are where a
/// task asks for a few devices of a few kinds; beyond it the node is taken to have no way.
const TRIES_MAX: u32 = 1_000;

/// One request of a task, made ready to be asked of nodes.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAsk {
    name: DeviceName,
    count: usize,
    /// What a kind of device has to satisfy.
    of_kinds: Vec<DeviceCheck>,
    /// What each instance has to satisfy.
    of_instances: Vec<DeviceCheck>,
    /// Each with its weight.
    affinities: Vec<(DeviceCheck, f64)>,
}

/// The instances that a request gets, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The position of the kind among the node's.
    pub(crate) kind: usize,
    /// The positions of the instances.
    pub(crate) instances: Vec<usize>,
}

/// What requests get on a node, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) chosen: Vec<Chosen>,
    /// −1 to 1; `None`: no request has affinities.
    pub(crate) score: Option<f64>,
}

impl DeviceAsk {
    pub(crate) fn new(request: &DeviceRequest) -> Self {
        let checks: Vec<_> = request.constraints.iter().map(DeviceCheck::new).collect();
        let of_instances = checks.iter().filter(|check| check.is_about_ids());
        let of_kinds = checks.iter().filter(|check| check.is_asked_of_kinds());
        Self {
            name: DeviceName::parse(&request.name),
            count: usize::try_from(request.count).unwrap_or(usize::MAX),
            of_kinds: of_kinds.cloned().collect(),
            of_instances: of_instances.cloned().collect(),
            affinities: request.affinities.iter().map(weighed).collect(),
        }
    }

    pub(crate) fn has_affinities(&self) -> bool {
        !self.affinities.is_empty()
    }

    /// Tells whether devices of `kind` will do, however many are free.
    fn suits(&self, kind: &NodeDevice) -> bool {
        if !self.name.matches(kind) {
            return false;
        }
        let facts = Facts::of_kind(kind);
        self.of_kinds.iter().all(|check| check.passes(&facts))
    }

    fn suits_instance(&self, kind: &NodeDevice, id: &str) -> bool {
        let facts = Facts::of_instance(kind, id);
        self.of_instances.iter().all(|check| check.passes(&facts))
    }

    /// Returns the weights of the affinities that `kind` matches, summed up.
    fn liking(&self, kind: &NodeDevice) -> f64 {
        if self.affinities.is_empty() {
            return 0.0;
        }
        let facts = Facts::of_kind(kind);
        let matching = self.affinities.iter();
        let matching = matching.filter(|(check, _)| check.passes(&facts));
        matching.map(|(_, weight)| weight).sum()
    }

    fn weight(&self) -> f64 {
        self.affinities.iter().map(|(_, weight)| weight.abs()).sum()
    }
}

fn weighed(affinity: &Affinity) -> (DeviceCheck, f64) {
    let check = DeviceCheck::from_parts(&affinity.left, affinity.operator, &affinity.right);
    (check, f64::from(affinity.weight))
}

/// Finds instances of `node` for all of `asks` beside what `holds` says is taken.
///
/// Each request gets healthy, free instances of one kind, of the kind it likes best where the
/// others still find something; of equals, what the node lists first.
pub(crate) fn choose(asks: &[&DeviceAsk], node: &Node, holds: &impl Holds) -> Option<Choice> {
    let is_free = |kind: &NodeDevice, instance: &model::node::DeviceInstance| {
        instance.healthy && !holds.holds_device(device_ref(kind, &instance.id))
    };
    let free = node.devices.iter();
    let free = free.map(|kind| {
        let instances = kind.instances.iter();
        instances.map(|instance| is_free(kind, instance)).collect()
    });
    let mut attempt = Attempt {
        asks,
        kinds: &node.devices,
        free: free.collect(),
        chosen: Vec::with_capacity(asks.len()),
        tries_left: TRIES_MAX,
    };
    if !attempt.serve(0) {
        return None;
    }
    let chosen = attempt.chosen;
    let weight: f64 = asks.iter().map(|ask| ask.weight()).sum();
    let liked = asks.iter().zip(&chosen);
    let liked: f64 = liked
        .map(|(ask, chosen)| ask.liking(&node.devices[chosen.kind]))
        .sum();
    Some(Choice {
        chosen,
        score: (weight > 0.0).then(|| liked / weight),
    })
}

pub(crate) fn device_ref<'a>(kind: &'a NodeDevice, instance_id: &'a str) -> DeviceRef<'a> {
    DeviceRef {
        vendor: &kind.vendor,
        device_type: &kind.device_type,
        name: &kind.name,
        instance_id,
    }
}

/// The search for a way to serve every request of a group on one node.
struct Attempt<'a> {
    asks: &'a [&'a DeviceAsk],
    kinds: &'a [NodeDevice],
    /// By the positions of kind and instance.
    free: Vec<Vec<bool>>,
    chosen: Vec<Chosen>,
    tries_left: u32,
}

impl Attempt<'_> {
    /// Serves the requests from `position` on; tells whether there was a way.
    fn serve(&mut self, position: usize) -> bool {
        let Some(ask) = self.asks.get(position).copied() else {
            return true;
        };
        let mut kinds: Vec<_> = (0..self.kinds.len())
            .filter(|kind| ask.suits(&self.kinds[*kind]))
            .map(|kind| (kind, ask.liking(&self.kinds[kind])))
            .collect();
        kinds.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        for (kind, _) in kinds {
            let Some(left) = self.tries_left.checked_sub(1) else {
                return false;
            };
            self.tries_left = left;
            let Some(instances) = self.free_instances(ask, kind) else {
                continue;
            };
            for instance in &instances {
                self.free[kind][*instance] = false;
            }
            self.chosen.push(Chosen { kind, instances });
            if self.serve(position + 1) {
                return true;
            }
            if let Some(Chosen { kind, instances }) = self.chosen.pop() {
                for instance in instances {
                    self.free[kind][instance] = true;
                }
            }
        }
        false
    }

    /// Returns as many free instances of a kind as are asked for.
    fn free_instances(&self, ask: &DeviceAsk, kind: usize) -> Option<Vec<usize>> {
        let device = &self.kinds[kind];
        let free = device
            .instances
            .iter()
            .enumerate()
            .filter(|(at, instance)| {
                self.free[kind][*at] && ask.suits_instance(device, &instance.id)
            });
        let found: Vec<_> = free.map(|(at, _)| at).take(ask.count).collect();
        (found.len() == ask.count).then_some(found)
    }
}

/// What a request names: `type`, `vendor/type` or `vendor/type/name`.
#[derive(Clone, Debug)]
struct DeviceName {
    vendor: Option<String>,
    device_type: String,
    name: Option<String>,
}

impl DeviceName {
    fn parse(text: &str) -> Self {
        let mut parts = text.splitn(3, '/').map(str::to_owned);
        let first = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            (None, _) => Self {
                vendor: None,
                device_type: first,
                name: None,
            },
            (Some(device_type), name) => Self {
                vendor: Some(first),
                device_type,
                name,
            },
        }
    }

    fn matches(&self, kind: &NodeDevice) -> bool {
        let is = |want: &Option<String>, has: &String| want.as_ref().is_none_or(|want| want == has);
        self.device_type == kind.device_type
            && is(&self.vendor, &kind.vendor)
            && is(&self.name, &kind.name)
    }
}

/// What `${device.…}` stands for.
struct Facts<'a> {
    kind: &'a NodeDevice,
    ids: Cow<'a, str>,
    is_instance: bool,
}

impl<'a> Facts<'a> {
    fn of_kind(kind: &'a NodeDevice) -> Self {
        let ids = kind.instances.iter().map(|instance| instance.id.as_str());
        Self {
            kind,
            ids: Cow::Owned(ids.collect::<Vec<_>>().join(",")),
            is_instance: false,
        }
    }

    fn of_instance(kind: &'a NodeDevice, id: &'a str) -> Self {
        Self {
            kind,
            ids: Cow::Borrowed(id),
            is_instance: true,
        }
    }
}

/// A constraint on a device, or the test of an affinity.
#[derive(Clone, Debug)]
struct DeviceCheck {
    left: DeviceTarget,
    operator: Operator,
    right: DeviceTarget,
}

/// One side of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DeviceTarget {
    Literal(String),
    Ids,
    Model,
    Vendor,
    Type,
    Attribute(String),
    /// An interpolation that names nothing of a device: never found.
    Unknown,
}

impl DeviceTarget {
    fn parse(text: &str) -> Self {
        let Some(rest) = text.strip_prefix("${") else {
            return Self::Literal(text.to_owned());
        };
        match rest.strip_suffix('}') {
            Some("device.ids") => Self::Ids,
            Some("device.model") => Self::Model,
            Some("device.vendor") => Self::Vendor,
            Some("device.type") => Self::Type,
            Some(name) => match name.strip_prefix("device.attr.") {
                Some(key) => Self::Attribute(key.to_owned()),
                None => Self::Unknown,
            },
            None => Self::Unknown,
        }
    }

    fn resolve<'a>(&'a self, facts: &'a Facts<'_>) -> Option<&'a str> {
        Some(match self {
            Self::Literal(text) => text,
            Self::Ids => &facts.ids,
            Self::Model => &facts.kind.name,
            Self::Vendor => &facts.kind.vendor,
            Self::Type => &facts.kind.device_type,
            Self::Attribute(key) => facts.kind.attributes.get(key)?,
            Self::Unknown => return None,
        })
    }
}

impl DeviceCheck {
    fn new(constraint: &Constraint) -> Self {
        Self::from_parts(&constraint.left, constraint.operator, &constraint.right)
    }

    fn from_parts(left: &str, operator: Operator, right: &str) -> Self {
        Self {
            left: DeviceTarget::parse(left),
            operator,
            right: DeviceTarget::parse(right),
        }
    }

    fn is_about_ids(&self) -> bool {
        self.left == DeviceTarget::Ids || self.right == DeviceTarget::Ids
    }

    /// What is said of one id holds for an instance; what is said of a list, for all of a kind, too.
    fn is_asked_of_kinds(&self) -> bool {
        !self.is_about_ids()
            || matches!(
                self.operator,
                Operator::SetContains | Operator::SetContainsAll | Operator::SetContainsAny
            )
    }

    fn passes(&self, facts: &Facts<'_>) -> bool {
        let left = self.left.resolve(facts);
        let right = self.right.resolve(facts);
        let (left, right) = match (self.operator, left, right) {
            (Operator::IsSet, left, _) => return left.is_some(),
            (Operator::IsNotSet, left, _) => return left.is_none(),
            (Operator::NotEqual, left, right) if left.is_none() || right.is_none() => {
                return left.is_some() || right.is_some();
            }
            (_, Some(left), Some(right)) => (left, right),
            _ => return false,
        };
        // All of a kind's instances together have the ids of a list; one of them has one of it.
        if facts.is_instance
            && self.left == DeviceTarget::Ids
            && matches!(
                self.operator,
                Operator::SetContains | Operator::SetContainsAll
            )
        {
            return compare_texts(right, Operator::SetContains, left);
        }
        compare(left, self.operator, right)
    }
}

/// Compares with units where both sides are of a kind; otherwise nothing holds.
fn compare(left: &str, operator: Operator, right: &str) -> bool {
    let order = || Quantity::parse(left).compare(Quantity::parse(right));
    let equals = || Quantity::parse(left).equals(Quantity::parse(right));
    match operator {
        Operator::Equal => equals() == Some(true),
        Operator::NotEqual => equals() == Some(false),
        Operator::Less => order().is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => order().is_some_and(Ordering::is_le),
        Operator::Greater => order().is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        Operator::Regexp
        | Operator::Version
        | Operator::Semver
        | Operator::SetContains
        | Operator::SetContainsAll
        | Operator::SetContainsAny => compare_texts(left, operator, right),
        // About several allocations, which a device knows nothing of; or answered before.
        Operator::DistinctHosts
        | Operator::DistinctProperty
        | Operator::IsSet
        | Operator::IsNotSet => false,
    }
}

#[cfg(test)]
mod tests {
    use model::node::DeviceInstance;
    use test_kit::builders;

    use super::*;

    /// Nothing is held.
    struct Free;

    impl Holds for Free {
        fn holds_core(&self, _: u16) -> bool {
            false
        }

        fn holds_device(&self, _: DeviceRef<'_>) -> bool {
            false
        }
    }

    fn kind(words: &str, ids: &[&str], attributes: &[(&str, &str)]) -> NodeDevice {
        let mut words = words.split('/').map(str::to_owned);
        let instances = ids.iter().map(|id| DeviceInstance {
            id: (*id).to_owned(),
            healthy: true,
        });
        NodeDevice {
            vendor: words.next().unwrap(),
            device_type: words.next().unwrap(),
            name: words.next().unwrap(),
            attributes: attributes
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            env: String::new(),
            instances: instances.collect(),
        }
    }

    /// A small and a large model, and something else.
    fn node() -> Node {
        let mut node = builders::node(1);
        node.devices = vec![
            kind(
                "nvidia/gpu/k80",
                &["a", "b"],
                &[("memory", "4 GiB"), ("ecc", "false")],
            ),
            kind("nvidia/gpu/a100", &["c", "d"], &[("memory", "40960 MiB")]),
            kind("xilinx/fpga/u50", &["e"], &[]),
        ];
        node
    }

    fn ask(name: &str, count: u64, constraints: &[&str], affinities: &[(&str, i8)]) -> DeviceAsk {
        let words = |text: &str| {
            let mut words = text.splitn(3, ' ').map(str::to_owned);
            let left = format!("${{device.{}}}", words.next().unwrap());
            let operator = Operator::parse(&words.next().unwrap()).unwrap();
            (left, operator, words.next().unwrap_or_default())
        };
        let constraints = constraints.iter().map(|text| {
            let (left, operator, right) = words(text);
            Constraint {
                left,
                operator,
                right,
            }
        });
        let affinities = affinities.iter().map(|(text, weight)| {
            let (left, operator, right) = words(text);
            Affinity {
                left,
                operator,
                right,
                weight: *weight,
            }
        });
        DeviceAsk::new(&DeviceRequest {
            name: name.into(),
            count,
            constraints: constraints.collect(),
            affinities: affinities.collect(),
        })
    }

    /// Returns the ids that each request gets, and the score.
    fn chosen(asks: &[DeviceAsk]) -> Option<(Vec<String>, Option<f64>)> {
        let node = node();
        let asks: Vec<_> = asks.iter().collect();
        let choice = choose(&asks, &node, &Free)?;
        let ids = choice.chosen.iter().map(|chosen| {
            let instances = &node.devices[chosen.kind].instances;
            let ids = chosen.instances.iter().map(|at| instances[*at].id.as_str());
            ids.collect()
        });
        Some((ids.collect(), choice.score))
    }

    #[test]
    fn a_name_says_as_much_as_it_likes() {
        for (name, want) in [
            ("gpu", Some("a")),
            ("nvidia/gpu", Some("a")),
            ("nvidia/gpu/a100", Some("c")),
            ("fpga", Some("e")),
            ("amd/gpu", None),
            ("nvidia", None),
            ("nvidia/gpu/a1", None),
        ] {
            let ids = chosen(&[ask(name, 1, &[], &[])]).map(|(ids, _)| ids[0].clone());
            assert_eq!(ids.as_deref(), want, "{name}");
        }
    }

    #[test]
    fn constraints_compare_amounts_with_their_units() {
        for (constraint, want) in [
            ("attr.memory >= 8 GiB", Some("c")),
            ("attr.memory = 4096 MiB", Some("a")),
            ("attr.memory < 1 TiB", Some("a")),
            ("model = a100", Some("c")),
            ("model regexp ^a", Some("c")),
            ("vendor != nvidia", None),
            ("type = gpu", Some("a")),
            // What is not of a kind is neither equal nor different.
            ("attr.memory != 8 GHz", None),
            ("attr.memory > 8", None),
            // One side is missing.
            ("attr.absent != x", Some("a")),
            ("attr.absent = x", None),
            ("attr.ecc is_not_set", Some("c")),
            ("attr.ecc != true", Some("a")),
            ("unheard_of = x", None),
        ] {
            let ids = chosen(&[ask("gpu", 1, &[constraint], &[])]).map(|(ids, _)| ids[0].clone());
            assert_eq!(ids.as_deref(), want, "{constraint}");
        }
    }

    #[test]
    fn instances_can_be_named() {
        for (constraint, count, want) in [
            ("ids set_contains d", 1, Some("d")),
            ("ids set_contains c,d", 2, Some("cd")),
            ("ids set_contains_any b,x", 1, Some("b")),
            ("ids = b", 1, Some("b")),
            ("ids != a", 1, Some("b")),
            ("ids = b", 2, None),
            ("ids set_contains a,c", 1, None),
        ] {
            let ids = chosen(&[ask("gpu", count, &[constraint], &[])]);
            let ids = ids.map(|(ids, _)| ids[0].clone());
            assert_eq!(ids.as_deref(), want, "{constraint}");
        }
    }

    #[test]
    fn the_kind_that_is_liked_best_is_taken_and_says_how_much() {
        let liking = [("attr.memory > 8 GiB", 60), ("model = k80", -40)];
        let (ids, score) = chosen(&[ask("gpu", 1, &[], &liking)]).unwrap();
        assert_eq!((ids[0].as_str(), score), ("c", Some(0.6)));
        let small = ask("gpu", 1, &["model = k80"], &liking);
        let (ids, score) = chosen(&[small]).unwrap();
        assert_eq!((ids[0].as_str(), score), ("a", Some(-0.4)));
        let (_, score) = chosen(&[ask("gpu", 1, &[], &[])]).unwrap();
        assert_eq!(score, None);
    }

    #[test]
    fn a_request_that_may_choose_leaves_the_other_what_it_needs() {
        let any = ask("gpu", 2, &[], &[("model = k80", 100)]);
        let fixed = ask("nvidia/gpu/k80", 1, &[], &[]);
        let (ids, _) = chosen(&[any.clone(), fixed.clone()]).unwrap();
        assert_eq!(ids, ["cd", "a"]);
        let two = ask("nvidia/gpu/a100", 1, &[], &[]);
        assert_eq!(chosen(&[any, fixed, two]), None, "five of four");
    }

    /// A request that no node can serve in any way must not take for ever to find out.
    #[test]
    fn the_search_for_a_way_ends() {
        let mut node = builders::node(1);
        node.devices = (0..12)
            .map(|number| kind(&format!("v/gpu/m{number}"), &["a", "b"], &[]))
            .collect();
        let asks: Vec<_> = (0..30).map(|_| ask("gpu", 1, &[], &[])).collect();
        assert_eq!(choose(&asks.iter().collect::<Vec<_>>(), &node, &Free), None);
    }
}
