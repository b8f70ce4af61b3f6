//! Order of the gateways: the first one is called until it fails, then it goes to the end.

/// The gateways of the cluster, never empty.
#[derive(Debug)]
pub(super) struct GatewayOrder {
    addresses: Vec<String>,
    /// The configured gateways, for the case that all others are gone.
    configured: Vec<String>,
    /// The last call failed, and none has succeeded since.
    is_failing: bool,
}

impl GatewayOrder {
    /// `configured` is not empty.
    pub(super) fn new(configured: Vec<String>) -> Self {
        Self {
            addresses: configured.clone(),
            configured,
            is_failing: false,
        }
    }

    pub(super) fn current(&self) -> &str {
        &self.addresses[0]
    }

    /// Returns the current gateway, or the next one if that is `avoided` and there are others.
    pub(super) fn current_but(&self, avoided: Option<&str>) -> &str {
        let mut others = self.addresses.iter();
        let other = others.find(|address| Some(address.as_str()) != avoided);
        other.map_or(self.current(), String::as_str)
    }

    pub(super) fn count(&self) -> usize {
        self.addresses.len()
    }

    pub(super) fn contains(&self, address: &str) -> bool {
        self.addresses.iter().any(|known| known == address)
    }

    /// Replaces the list. An equal set keeps its order, with failed gateways at the end. A new set is
    /// shuffled with random numbers from `draw`, so that nodes do not all call the same gateway, but
    /// the current gateway stays first. Returns whether the set is new.
    pub(super) fn replace(&mut self, addresses: &[String], draw: impl FnMut() -> u64) -> bool {
        if addresses.is_empty() {
            return false;
        }
        let (mut old, mut new) = (self.addresses.clone(), addresses.to_vec());
        old.sort();
        new.sort();
        new.dedup();
        if old == new {
            return false;
        }
        shuffle(&mut new, draw);
        if let Some(position) = new.iter().position(|address| address == self.current()) {
            new.swap(0, position);
        }
        self.addresses = new;
        true
    }

    /// Records a success. Returns whether it ends a row of failures.
    pub(super) fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.is_failing)
    }

    /// Moves a failed gateway to the end, unless another caller has done so. Returns the next gateway,
    /// if there is another one.
    pub(super) fn failed(&mut self, address: &str) -> Option<&str> {
        self.is_failing = true;
        if self.current() != address {
            return None;
        }
        let missing: Vec<String> = self
            .configured
            .iter()
            .filter(|address| !self.has_same_host(address))
            .cloned()
            .collect();
        // The failed gateway may have sent a wrong list.
        self.addresses.extend(missing);
        self.skip();
        (self.addresses.len() > 1).then(|| self.current())
    }

    /// Tells whether the list has this gateway, with whatever scheme: gateways announce themselves with
    /// `http://` also where all connections use TLS.
    fn has_same_host(&self, address: &str) -> bool {
        let host = without_scheme(address);
        self.addresses
            .iter()
            .any(|known| without_scheme(known) == host)
    }

    /// Moves the current gateway to the end.
    pub(super) fn skip(&mut self) {
        self.addresses.rotate_left(1);
    }
}

fn without_scheme(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.trim_end_matches('/')
}

fn shuffle(addresses: &mut [String], mut draw: impl FnMut() -> u64) {
    for position in (1..addresses.len()).rev() {
        let bound = u64::try_from(position + 1).unwrap_or(1);
        let other = usize::try_from(draw() % bound).unwrap_or(0);
        addresses.swap(position, other);
    }
}
