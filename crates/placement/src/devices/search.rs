//! Search of an assignment that serves every device request of a group on one node.
//!
//! Kinds are tried for each request, the best affinity first; instances within kinds are a
//! matching, found without trying. The same matching, with every undecided request free to take
//! instances of several kinds, prunes early: where every request asks for one instance it is exact,
//! and nothing is tried twice.

use model::node::NodeDevice;

use crate::devices::ask::{Chosen, DeviceAsk};

/// The maximum number of tries for a group on one node. Only requests for several instances each
/// can need more (filling kinds with them is bin packing); the node then counts as unsuitable.
const TRIES_MAX: u32 = 1_000;

/// Returns the instances of each of `asks`, in their order, among those that are free by kind and
/// instance id; `None`: there is no assignment.
pub(super) fn search(
    asks: &[&DeviceAsk],
    kinds: &[NodeDevice],
    is_free: impl Fn(&NodeDevice, &str) -> bool,
) -> Option<Vec<Chosen>> {
    let mut instances = Vec::new();
    for (kind, device) in kinds.iter().enumerate() {
        for (position, instance) in device.instances.iter().enumerate() {
            if instance.healthy && is_free(device, &instance.id) {
                instances.push(Instance { kind, position });
            }
        }
    }
    let wanted = asks.iter().map(|ask| ask.count);
    // Before allocating anything in proportion to the requests.
    if wanted.fold(0_usize, usize::saturating_add) > instances.len() {
        return None;
    }
    let requests = asks.iter().map(|ask| Request::new(ask, kinds, &instances));
    let mut attempt = Attempt {
        requests: requests.collect(),
        instances: &instances,
        tries_left: TRIES_MAX,
    };
    let given = attempt.at_once().or_else(|| attempt.with_trials())?;
    let chosen = given.into_iter().zip(&attempt.requests);
    let chosen = chosen.map(|(given, request)| Chosen {
        kind: given.first().map_or_else(
            // No instances were asked for.
            || request.kinds.first().map_or(0, |(kind, _)| *kind),
            |first| instances[*first].kind,
        ),
        instances: given.iter().map(|at| instances[*at].position).collect(),
    });
    Some(chosen.collect())
}

/// A free instance, by the positions of its kind and in it.
struct Instance {
    kind: usize,
    position: usize,
}

/// The options of a request.
struct Request {
    count: usize,
    /// The kinds with enough instances, the best affinity first, with their suitable instances.
    kinds: Vec<(usize, Vec<usize>)>,
}

impl Request {
    fn new(ask: &DeviceAsk, kinds: &[NodeDevice], instances: &[Instance]) -> Self {
        let suitable = (0..kinds.len()).filter(|kind| ask.suits(&kinds[*kind]));
        let mut suitable: Vec<_> = suitable
            .map(|kind| {
                let device = &kinds[kind];
                let instances = instances.iter().enumerate();
                let instances = instances.filter(|(_, instance)| {
                    instance.kind == kind
                        && ask.suits_instance(device, &device.instances[instance.position].id)
                });
                (kind, instances.map(|(at, _)| at).collect::<Vec<_>>())
            })
            .filter(|(_, instances)| instances.len() >= ask.count)
            .collect();
        suitable.sort_by(|(left, _), (right, _)| {
            let (left, right) = (
                ask.preference(&kinds[*left]),
                ask.preference(&kinds[*right]),
            );
            right.total_cmp(&left)
        });
        Self {
            count: ask.count,
            kinds: suitable,
        }
    }
}

struct Attempt<'a> {
    requests: Vec<Request>,
    instances: &'a [Instance],
    tries_left: u32,
}

/// The instances of each request, in the node's order.
type Given = Vec<Vec<usize>>;

impl Attempt<'_> {
    /// Assigns every request the first of its best kinds: usually that works.
    fn at_once(&self) -> Option<Given> {
        let mut is_taken = vec![false; self.instances.len()];
        let mut given = Vec::with_capacity(self.requests.len());
        for request in &self.requests {
            let taken = request.kinds.iter().find_map(|(_, instances)| {
                let free = instances.iter().filter(|at| !is_taken[**at]);
                let free: Vec<_> = free.copied().take(request.count).collect();
                (free.len() == request.count).then_some(free)
            })?;
            for at in &taken {
                is_taken[*at] = true;
            }
            given.push(taken);
        }
        Some(given)
    }

    fn with_trials(&mut self) -> Option<Given> {
        let mut fixed = Vec::with_capacity(self.requests.len());
        let given = self.matching(&fixed)?;
        if self.requests.is_empty() {
            return Some(given);
        }
        self.fix(&mut fixed)
    }

    /// Chooses a kind (by position in the request's list) for each request without one in `fixed`.
    fn fix(&mut self, fixed: &mut Vec<usize>) -> Option<Given> {
        let request = fixed.len();
        for kind in 0..self.requests[request].kinds.len() {
            self.tries_left = self.tries_left.checked_sub(1)?;
            fixed.push(kind);
            if let Some(given) = self.matching(fixed) {
                if fixed.len() == self.requests.len() {
                    return Some(given);
                }
                if let Some(given) = self.fix(fixed) {
                    return Some(given);
                }
            }
            fixed.pop();
        }
        None
    }

    /// Gives each request its number of instances: of its kind if one is `fixed`, else of any
    /// suitable kind.
    fn matching(&self, fixed: &[usize]) -> Option<Given> {
        let mut matching = Matching {
            filter: &|request, visit| {
                let kinds = &self.requests[request].kinds;
                let kinds = match fixed.get(request) {
                    Some(kind) => &kinds[*kind..=*kind],
                    None => kinds,
                };
                kinds.iter().flat_map(|(_, at)| at).any(|at| visit(*at))
            },
            owners: vec![None; self.instances.len()],
        };
        for (request, wanted) in self.requests.iter().enumerate() {
            for _ in 0..wanted.count {
                let mut is_seen = vec![false; self.instances.len()];
                if !matching.find(request, &mut is_seen) {
                    return None;
                }
            }
        }
        let mut given = vec![Vec::new(); self.requests.len()];
        for (at, owner) in matching.owners.into_iter().enumerate() {
            if let Some(owner) = owner {
                given[owner].push(at);
            }
        }
        Some(given)
    }
}

/// Offers a request's instances one by one until one is taken; tells whether one was.
type InstanceFilter<'a> = &'a dyn Fn(usize, &mut dyn FnMut(usize) -> bool) -> bool;

/// A bipartite matching by augmenting paths (Kuhn's algorithm).
struct Matching<'a> {
    filter: InstanceFilter<'a>,
    /// The request that has the instance.
    owners: Vec<Option<usize>>,
}

impl Matching<'_> {
    /// Finds one more instance for a request; the request that had it finds another.
    fn find(&mut self, request: usize, is_seen: &mut [bool]) -> bool {
        let filter = self.filter;
        filter(request, &mut |at| {
            if std::mem::replace(&mut is_seen[at], true) {
                return false;
            }
            let is_found = match self.owners[at] {
                Some(owner) => self.find(owner, is_seen),
                None => true,
            };
            if is_found {
                self.owners[at] = Some(request);
            }
            is_found
        })
    }
}
