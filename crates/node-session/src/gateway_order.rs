//! Order of the gateways: the first one is called until it fails, then it goes to the end.

use rand::Rng;
use rand::seq::SliceRandom as _;

/// The gateways of the cluster, never empty.
#[derive(Debug)]
pub struct GatewayOrder {
    addresses: Vec<String>,
    /// The configured gateways, for the case that all others are gone.
    configured: Vec<String>,
    /// The last call failed, and none has succeeded since.
    is_failing: bool,
}

impl GatewayOrder {
    /// `configured`: addresses with or without a scheme, at least one.
    ///
    /// # Panics
    /// [`Self::current`] panics if `configured` is empty.
    pub fn new(configured: Vec<String>) -> Self {
        Self {
            addresses: configured.clone(),
            configured,
            is_failing: false,
        }
    }

    /// Returns the gateway that is called next.
    pub fn current(&self) -> &str {
        &self.addresses[0]
    }

    /// Returns the current gateway, or the next one if that is `avoided` and there are others.
    pub fn current_but(&self, avoided: Option<&str>) -> &str {
        let mut others = self.addresses.iter();
        let other = others.find(|address| Some(address.as_str()) != avoided);
        other.map_or(self.current(), String::as_str)
    }

    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    pub fn contains(&self, address: &str) -> bool {
        self.addresses.iter().any(|known| known == address)
    }

    /// Replaces the list. An equal set keeps its order, with failed gateways at the end. A new set is
    /// shuffled, so that nodes do not all call the same gateway, but the current gateway stays first.
    /// Returns whether the set is new.
    pub fn replace(&mut self, addresses: &[String], rng: &mut impl Rng) -> bool {
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
        new.shuffle(rng);
        if let Some(position) = new.iter().position(|address| address == self.current()) {
            new.swap(0, position);
        }
        self.addresses = new;
        true
    }

    /// Records a success. Returns whether it ends a row of failures.
    pub fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.is_failing)
    }

    /// Moves a failed gateway to the end, unless another caller has done so. Returns the next gateway,
    /// if there is another one.
    pub fn failed(&mut self, address: &str) -> Option<&str> {
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
    pub fn skip(&mut self) {
        self.addresses.rotate_left(1);
    }
}

fn without_scheme(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn order(configured: &[&str]) -> (GatewayOrder, StdRng) {
        let rng = StdRng::seed_from_u64(1);
        (GatewayOrder::new(strings(configured)), rng)
    }

    #[test]
    fn scenario_012_a_failed_gateway_goes_to_the_end_once() {
        let (mut order, _) = order(&["a", "b", "c"]);
        for (failed, next, current) in [
            ("a", Some("b"), "b"),
            // Another loop called the same gateway: it is not the current one any more.
            ("a", None, "b"),
            ("b", Some("c"), "c"),
            ("c", Some("a"), "a"),
        ] {
            assert_eq!(order.failed(failed), next, "{failed}");
            assert_eq!(order.current(), current, "{failed}");
        }
        assert!(order.succeeded(), "the row of failures ends");
        assert!(!order.succeeded(), "once");
    }

    #[test]
    fn a_new_list_keeps_the_current_gateway_and_an_equal_one_keeps_the_order() {
        let (mut order, mut rng) = order(&["a"]);
        assert!(order.replace(&strings(&["x", "y", "a", "y"]), &mut rng));
        assert_eq!((order.current(), order.count()), ("a", 3));
        order.failed("a");
        let next = order.current().to_owned();
        assert!(!order.replace(&strings(&["a", "y", "x"]), &mut rng));
        assert_eq!(order.current(), next, "the failed one stays at the end");
        assert!(!order.replace(&[], &mut rng), "an empty list is no list");
        assert_eq!(order.count(), 3);
    }

    #[test]
    fn the_configured_gateways_come_back_when_the_others_fail() {
        let (mut order, mut rng) = order(&["a"]);
        order.replace(&strings(&["x", "y"]), &mut rng);
        assert!(!order.contains("a"));
        let first = order.current().to_owned();
        order.failed(&first);
        assert!(order.contains("a") && order.count() == 3);
    }

    #[test]
    fn the_configured_address_of_the_only_gateway_is_no_other_gateway() {
        let (mut order, mut rng) = order(&["https://a:1/"]);
        order.replace(&strings(&["http://a:1"]), &mut rng);
        let next = order.failed("http://a:1");
        assert_eq!(next, None, "the scheme is no difference");
        assert_eq!(order.count(), 1);
        order.replace(&strings(&["http://b:1"]), &mut rng);
        assert_eq!(order.failed("http://b:1"), Some("https://a:1/"));
    }

    #[test]
    fn an_avoided_gateway_is_called_only_if_there_is_no_other() {
        let (order_of_two, _) = order(&["a", "b"]);
        assert_eq!(order_of_two.current_but(Some("a")), "b");
        assert_eq!(order_of_two.current_but(Some("c")), "a");
        assert_eq!(order_of_two.current_but(None), "a");
        let (order_of_one, _) = order(&["a"]);
        assert_eq!(order_of_one.current_but(Some("a")), "a");
    }

    #[test]
    fn a_fleet_spreads_over_new_gateways() {
        let mut calls = std::collections::BTreeMap::new();
        for seed in 0..400 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut order = GatewayOrder::new(strings(&["gone"]));
            order.replace(&strings(&["a", "b", "c", "d"]), &mut rng);
            *calls.entry(order.current().to_owned()).or_insert(0) += 1;
        }
        assert_eq!(calls.len(), 4);
        assert!(calls.values().all(|count| *count > 60), "{calls:?}");
    }
}
