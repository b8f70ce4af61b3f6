//! Which ports of a node are held, address by address, as bitmaps.
//!
//! A node's allocations hold few of its 65,536 ports, and those mostly lie in one range: so only
//! words with a port in them are kept, in order. One that shares with a snapshot is copied when it
//! is changed, some hundred bytes at once.

use std::sync::Arc;

use model::AllocatedPort;

/// How many ports are in one word of a bitmap.
pub const WORD_BITS: u16 = 64;

/// The ports that allocations hold on a node's addresses. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortUse {
    /// `None`: nobody holds a port.
    held: Option<Arc<Held>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    /// In the order of their names; each has a port that is held.
    addresses: Vec<AddressPorts>,
    /// How many pairs of an address and a port are held.
    count: u32,
}

/// The ports that are held on one address.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressPorts {
    address: Arc<str>,
    /// Number of the word → its ports, lowest bit first; ordered, and none is empty.
    words: Vec<(u16, u64)>,
    /// Port → how many hold it beyond the first; empty but for collisions.
    more: Vec<(u16, u32)>,
}

/// No port.
pub static NO_PORTS: PortUse = PortUse { held: None };

impl PortUse {
    pub fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Returns how many pairs of an address and a port are held.
    pub fn len(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.count)
    }

    /// Returns what is held on `address`; `None`: nothing.
    pub fn on(&self, address: &str) -> Option<&AddressPorts> {
        let held = self.held.as_ref()?;
        held.addresses
            .iter()
            .find(|ports| *ports.address == *address)
    }

    pub fn holds(&self, address: &str, port: u16) -> bool {
        self.on(address).is_some_and(|ports| ports.holds(port))
    }

    /// Returns every address and port that is held, with how many hold it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u16, u32)> {
        let addresses = self.held.iter().flat_map(|held| &held.addresses);
        addresses.flat_map(|ports| {
            ports
                .ports()
                .map(|port| (&*ports.address, port, 1 + ports.more(port)))
        })
    }

    /// Counts one more holder of each of `ports`.
    pub fn add(&mut self, ports: &[AllocatedPort]) {
        if ports.is_empty() {
            return;
        }
        let held = Arc::make_mut(self.held.get_or_insert_default());
        for port in ports {
            held.count += u32::from(held.on_mut(&port.host_ip).add(port.value));
        }
    }

    /// Counts one holder less.
    pub fn remove(&mut self, ports: &[AllocatedPort]) {
        let Some(held) = self.held.as_mut().filter(|_| !ports.is_empty()) else {
            return;
        };
        let held = Arc::make_mut(held);
        for port in ports {
            let Ok(position) = held.position(&port.host_ip) else {
                continue;
            };
            let on = &mut held.addresses[position];
            held.count -= u32::from(on.remove(port.value));
            if on.words.is_empty() {
                held.addresses.remove(position);
            }
        }
        if held.addresses.is_empty() {
            self.held = None;
        }
    }
}

impl Held {
    fn position(&self, address: &str) -> Result<usize, usize> {
        self.addresses
            .binary_search_by(|ports| (*ports.address).cmp(address))
    }

    fn on_mut(&mut self, address: &str) -> &mut AddressPorts {
        let position = self.position(address).unwrap_or_else(|position| {
            let none = AddressPorts {
                address: Arc::from(address),
                words: Vec::new(),
                more: Vec::new(),
            };
            self.addresses.insert(position, none);
            position
        });
        &mut self.addresses[position]
    }
}

impl AddressPorts {
    pub fn holds(&self, port: u16) -> bool {
        let (word, bit) = place(port);
        self.word(word) & bit != 0
    }

    /// Returns the ports in ascending order.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.words.iter().flat_map(|(word, bits)| {
            let ports = (0..WORD_BITS).filter(move |bit| bits >> bit & 1 == 1);
            ports.map(move |bit| word * WORD_BITS + bit)
        })
    }

    /// Returns the ports of one word, the lowest first: port `n` is in the word `n / WORD_BITS`.
    pub fn word(&self, word: u16) -> u64 {
        self.find(word).map_or(0, |position| self.words[position].1)
    }

    fn find(&self, word: u16) -> Result<usize, usize> {
        self.words
            .binary_search_by_key(&word, |(number, _)| *number)
    }

    /// Returns how many hold `port` beyond the first.
    fn more(&self, port: u16) -> u32 {
        let found = self.more.iter().find(|(held, _)| *held == port);
        found.map_or(0, |(_, holders)| *holders)
    }

    /// Counts a holder; tells whether it is the first.
    fn add(&mut self, port: u16) -> bool {
        let (word, bit) = place(port);
        match self.find(word) {
            Err(position) => self.words.insert(position, (word, bit)),
            Ok(position) if self.words[position].1 & bit == 0 => self.words[position].1 |= bit,
            Ok(_) => {
                match self.more.binary_search_by_key(&port, |(held, _)| *held) {
                    Ok(position) => self.more[position].1 += 1,
                    Err(position) => self.more.insert(position, (port, 1)),
                }
                return false;
            }
        }
        true
    }

    /// Takes a holder away; tells whether it was the last. One that there is not changes nothing.
    fn remove(&mut self, port: u16) -> bool {
        if let Ok(position) = self.more.binary_search_by_key(&port, |(held, _)| *held) {
            self.more[position].1 -= 1;
            if self.more[position].1 == 0 {
                self.more.remove(position);
            }
            return false;
        }
        let (word, bit) = place(port);
        let Ok(position) = self.find(word) else {
            return false;
        };
        if self.words[position].1 & bit == 0 {
            return false;
        }
        self.words[position].1 &= !bit;
        if self.words[position].1 == 0 {
            self.words.remove(position);
        }
        true
    }
}

/// Returns the word that a port is in, and its bit there.
fn place(port: u16) -> (u16, u64) {
    (port / WORD_BITS, 1 << (port % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ADDRESSES: [&str; 2] = ["10.0.0.1", "192.168.0.1"];

    fn port(address: &str, value: u16) -> AllocatedPort {
        AllocatedPort {
            label: "http".into(),
            value,
            to: value,
            host_ip: address.into(),
            ignore_collision: false,
        }
    }

    #[test]
    fn a_snapshot_keeps_what_it_has_seen() {
        let mut now = PortUse::default();
        now.add(&[port(ADDRESSES[0], 80)]);
        let before = now.clone();
        now.remove(&[port(ADDRESSES[0], 80)]);
        now.add(&[port(ADDRESSES[0], 81)]);
        assert!(before.holds(ADDRESSES[0], 80) && !before.holds(ADDRESSES[0], 81));
        assert!(now.holds(ADDRESSES[0], 81) && !now.holds(ADDRESSES[0], 80));
    }

    proptest! {
        /// The bitmaps say what a plain count of holders says, whatever comes and goes; and what
        /// was given back leaves no trace.
        #[test]
        fn bitmaps_count_as_a_list_does(
            changes in prop::collection::vec((any::<bool>(), 0..2_usize, 0_u16..4, 0_u16..3), 0..60)
        ) {
            let mut held = PortUse::default();
            let mut counts = BTreeMap::<(&str, u16), u32>::new();
            for (comes, address, word, bit) in changes {
                let (address, value) = (ADDRESSES[address], word * 16_384 + bit * 31);
                let count = counts.entry((address, value)).or_default();
                if comes {
                    held.add(&[port(address, value)]);
                    *count += 1;
                } else {
                    held.remove(&[port(address, value)]);
                    *count = count.saturating_sub(1);
                }
                counts.retain(|_, count| *count > 0);
                let told: Vec<_> = held.iter().collect();
                let want: Vec<_> = counts.iter().map(|((a, p), count)| (*a, *p, *count)).collect();
                prop_assert_eq!(told, want);
                prop_assert_eq!(held.len() as usize, counts.len());
                prop_assert_eq!(held.is_empty(), counts.is_empty());
                let is_held = held.holds(address, value);
                prop_assert_eq!(is_held, counts.contains_key(&(address, value)));
            }
            for ((address, value), count) in counts {
                (0..count).for_each(|_| held.remove(&[port(address, value)]));
            }
            prop_assert_eq!(held, PortUse::default());
        }
    }
}
