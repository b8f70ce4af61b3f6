//! Held ports of a node as sparse bitmaps, one per address.
//!
//! A node's allocations hold few of its 65,536 ports, and those mostly lie in one range. So only
//! words with a held port are stored, in order. A bitmap shared with a snapshot is copied on write,
//! a few hundred bytes at once.

use std::sync::Arc;

use model::AllocatedPort;

/// Ports in one word of a bitmap.
pub const WORD_BITS: u16 = 64;

/// The ports that allocations hold on a node's addresses. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortUse {
    /// `None` when no port is held.
    held: Option<Arc<UsedPorts>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct UsedPorts {
    /// Sorted by address; each has at least one held port.
    addresses: Vec<AddressPorts>,
    /// Number of held (address, port) pairs.
    count: u32,
}

/// The held ports of one address.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressPorts {
    address: Arc<str>,
    /// Word number → its ports, lowest bit first; sorted, no word is empty.
    words: Vec<(u16, u64)>,
    /// Port → holders beyond the first; empty unless ports collide.
    more: Vec<(u16, u32)>,
}

/// Use of no port.
pub static NO_PORTS: PortUse = PortUse { held: None };

impl PortUse {
    pub fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Returns the number of held (address, port) pairs.
    pub fn len(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.count)
    }

    /// Returns the held ports of `address`; `None` when none is held.
    pub fn on(&self, address: &str) -> Option<&AddressPorts> {
        let held = self.held.as_ref()?;
        held.addresses
            .iter()
            .find(|ports| *ports.address == *address)
    }

    /// Returns every address with a held port, and its held ports.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, &AddressPorts)> {
        let addresses = self.held.iter().flat_map(|held| &held.addresses);
        addresses.map(|ports| (&*ports.address, ports))
    }

    pub fn holds(&self, address: &str, port: u16) -> bool {
        self.on(address).is_some_and(|ports| ports.holds(port))
    }

    /// Returns every held address and port with the number of its holders.
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

    /// Counts one holder less of each of `ports`.
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

impl UsedPorts {
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

    /// Returns the number of holders of `port` beyond the first.
    fn more(&self, port: u16) -> u32 {
        let found = self.more.iter().find(|(held, _)| *held == port);
        found.map_or(0, |(_, holders)| *holders)
    }

    /// Counts a holder; returns whether it is the first.
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

    /// Removes a holder; returns whether it was the last. Without a holder, nothing changes.
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

/// Returns the word of a port, and its bit in that word.
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
            task: String::new(),
        }
    }

    #[test]
    fn a_snapshot_keeps_its_ports_when_the_original_changes() {
        let mut now = PortUse::default();
        now.add(&[port(ADDRESSES[0], 80)]);
        let before = now.clone();
        now.remove(&[port(ADDRESSES[0], 80)]);
        now.add(&[port(ADDRESSES[0], 81)]);
        assert!(before.holds(ADDRESSES[0], 80) && !before.holds(ADDRESSES[0], 81));
        assert!(now.holds(ADDRESSES[0], 81) && !now.holds(ADDRESSES[0], 80));
    }

    proptest! {
        /// The bitmaps agree with a plain count of holders after any sequence of changes, and
        /// released ports leave no trace.
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
                let found: Vec<_> = held.iter().collect();
                let want: Vec<_> = counts.iter().map(|((a, p), count)| (*a, *p, *count)).collect();
                prop_assert_eq!(found, want);
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
