//! Messages in flight between machines, and the ends of connections.
//!
//! The model is TCP as programs see it: bytes arrive in order or the connection breaks; messages held
//! back by a cut are retransmitted after its repair; a machine without power does not answer, and a
//! restarted one resets connections that it does not know.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Waker;

use rand::rngs::StdRng;

use super::link::Link;
use super::message::{ConnectionId, End, HostId, Message, Payload};
use super::power::Power;

/// Bytes that one side may write before the other reads them.
const WINDOW: usize = 256 * 1024;
/// First port for binds to port 0 and for outgoing connections.
const ANY_PORT: u16 = 32_768;

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Socket {
    host: HostId,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    peer_host: HostId,
    is_open: bool,
    inbox: VecDeque<u8>,
    is_ended: bool,
    broken: Option<io::ErrorKind>,
    unread_by_peer: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Socket {
    fn wake(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.reader.take());
        wakers.extend(self.writer.take());
    }
}

#[derive(Default)]
struct Listening {
    accepted: VecDeque<End>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct Machine {
    is_down: bool,
    listeners: BTreeMap<u16, Listening>,
    next_port: u16,
    /// Arrived messages, until the machine runs.
    arrived: VecDeque<Message>,
}

struct State {
    now: u64,
    rng: StdRng,
    current: Option<HostId>,
    machines: Vec<Machine>,
    links: BTreeMap<(HostId, HostId), Link>,
    sockets: BTreeMap<End, Socket>,
    /// End → arrival time of the last message sent to it.
    arrivals: BTreeMap<End, u64>,
    next_connection: ConnectionId,
    /// (Arrival, order of sending) → machine and message; `None`: only a wake-up.
    events: BTreeMap<(u64, u64), (HostId, Option<Message>)>,
    next_event: u64,
}

fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(|state| act(state.as_mut().expect("an environment was created")))
}

/// As [`with`]. The wakers that `act` collects are called afterwards, because a wake-up may drop a
/// connection, which enters here again.
fn waking<T>(act: impl FnOnce(&mut State, &mut Vec<Waker>) -> T) -> T {
    let mut wakers = Vec::new();
    let result = with(|state| act(state, &mut wakers));
    wakers.into_iter().for_each(Waker::wake);
    result
}

pub(super) fn begin(rng: StdRng) {
    STATE.set(Some(State {
        now: 0,
        rng,
        current: None,
        machines: Vec::new(),
        links: BTreeMap::new(),
        sockets: BTreeMap::new(),
        arrivals: BTreeMap::new(),
        next_connection: 0,
        events: BTreeMap::new(),
        next_event: 0,
    }));
}

fn address_of(host: HostId) -> IpAddr {
    let number = u8::try_from(host + 1).expect("there are few machines");
    Ipv4Addr::new(10, 0, 0, number).into()
}

pub(super) fn add_host(id: HostId) -> IpAddr {
    with(|state| {
        state.machines.push(Machine {
            next_port: ANY_PORT,
            ..Machine::default()
        });
        assert_eq!(state.machines.len(), id + 1);
    });
    address_of(id)
}

pub(super) fn enter(id: HostId) {
    with(|state| state.current = Some(id));
}

pub(super) fn leave() {
    with(|state| state.current = None);
}

pub(super) fn next_event() -> Option<u64> {
    with(|state| state.events.keys().next().map(|(at, _)| *at))
}

/// Moves the messages that arrive by `now` to their machines. Returns these machines.
pub(super) fn begin_step(now: u64) -> BTreeSet<HostId> {
    with(|state| {
        state.now = now;
        let later = state.events.split_off(&(now + 1, 0));
        let due = std::mem::replace(&mut state.events, later);
        let mut addressed = BTreeSet::new();
        for (host, message) in due.into_values() {
            addressed.insert(host);
            state.machines[host].arrived.extend(message);
        }
        addressed
    })
}

/// Drops the arrived messages of a machine without power.
pub(super) fn deliver(host: HostId) {
    with(|state| {
        if state.machines[host].is_down {
            state.machines[host].arrived.clear();
        }
    });
}

/// Processes the arrived messages of a machine.
pub(super) fn hand_over(host: HostId) {
    waking(|state, wakers| {
        while let Some(message) = state.machines[host].arrived.pop_front() {
            state.receive(message, wakers);
        }
    });
}

pub(super) fn go_down(host: HostId, power: Power) {
    with(|state| {
        if power == Power::Off {
            // Without a notice to the peers.
            state.sockets.retain(|_, socket| socket.host != host);
        }
        let machine = &mut state.machines[host];
        machine.is_down = power == Power::Off;
        machine.arrived.clear();
    });
}

pub(super) fn come_up(host: HostId) {
    with(|state| state.machines[host].is_down = false);
}

/// Holds back all messages from one machine to another.
pub fn cut(from: HostId, to: HostId) {
    with(|state| state.link(from, to).cut());
}

/// Ends one such cut.
pub fn repair(from: HostId, to: HostId) {
    with(|state| {
        let now = state.now;
        for message in state.link(from, to).repair(now) {
            state.send(message);
        }
    });
}

/// Returns since when messages pass between two machines in both directions, in milliseconds; `None`:
/// they do not at present.
pub fn sound_since(one: HostId, other: HostId) -> Option<u64> {
    with(|state| {
        let there = state.link(one, other).sound_since()?;
        let back = state.link(other, one).sound_since()?;
        Some(there.max(back))
    })
}

/// Sets the additional delay of messages in milliseconds, and the losses per thousand.
pub fn impair(from: HostId, to: HostId, slowness: u64, loss: u32) {
    with(|state| {
        let now = state.now;
        state.link(from, to).impair(slowness, loss, now);
    });
}

/// Resets every connection of a machine.
pub fn reset_all(host: HostId) {
    waking(|state, wakers| {
        for socket in state.sockets.values_mut() {
            if socket.host == host || socket.peer_host == host {
                socket.broken = Some(io::ErrorKind::ConnectionReset);
                socket.wake(wakers);
            }
        }
    });
}

impl State {
    fn link(&mut self, from: HostId, to: HostId) -> &mut Link {
        self.links.entry((from, to)).or_default()
    }

    fn send(&mut self, message: Message) {
        let Self { links, rng, .. } = self;
        let link = links.entry((message.from, message.to)).or_default();
        let Some((message, delay)) = link.send(message, rng) else {
            return;
        };
        let mut at = self.now + delay;
        // In order on each connection.
        let last = self.arrivals.entry(message.end).or_default();
        at = at.max(*last);
        *last = at;
        let to = message.to;
        self.schedule(at, to, Some(message));
    }

    fn schedule(&mut self, at: u64, host: HostId, message: Option<Message>) {
        self.next_event += 1;
        self.events.insert((at, self.next_event), (host, message));
    }

    /// Wakes a machine in the next step, because another machine woke one of its tasks.
    fn nudge(&mut self, host: HostId) {
        if self.current != Some(host) {
            self.schedule(self.now + 1, host, None);
        }
    }

    fn receive(&mut self, message: Message, wakers: &mut Vec<Waker>) {
        let end = message.end;
        if let Payload::Connect { from, to } = message.payload {
            let listening = self.machines[message.to].listeners.get_mut(&to.port());
            let payload = match listening {
                None => Payload::Refused,
                Some(listening) => {
                    listening.accepted.push_back(end);
                    wakers.extend(listening.waker.take());
                    let socket = Socket {
                        host: message.to,
                        local: Some(to),
                        peer: Some(from),
                        peer_host: message.from,
                        is_open: true,
                        ..Socket::default()
                    };
                    self.sockets.insert(end, socket);
                    Payload::Accepted
                }
            };
            self.reply(&message, payload);
            return;
        }
        let Some(socket) = self.sockets.get_mut(&end) else {
            // The connection is unknown here.
            if !matches!(message.payload, Payload::Reset | Payload::Refused) {
                self.reply(&message, Payload::Reset);
            }
            return;
        };
        match message.payload {
            Payload::Connect { .. } => {}
            Payload::Accepted => socket.is_open = true,
            Payload::Refused => socket.broken = Some(io::ErrorKind::ConnectionRefused),
            Payload::Bytes(bytes) => socket.inbox.extend(bytes),
            Payload::Fin => socket.is_ended = true,
            Payload::Reset => socket.broken = Some(io::ErrorKind::ConnectionReset),
        }
        socket.wake(wakers);
    }

    fn reply(&mut self, message: &Message, payload: Payload) {
        self.send(Message {
            from: message.to,
            to: message.from,
            end: message.end.other(),
            payload,
        });
    }

    fn send_to_peer(&mut self, end: End, payload: Payload) {
        let Some(socket) = self.sockets.get(&end) else {
            return;
        };
        let message = Message {
            from: socket.host,
            to: socket.peer_host,
            end: end.other(),
            payload,
        };
        self.send(message);
    }
}

/// Binds a port of the current machine; port 0: a free one.
pub(super) fn listen(address: SocketAddr) -> io::Result<(HostId, SocketAddr)> {
    with(|state| {
        let host = state.current.expect("a machine runs");
        let machine = &mut state.machines[host];
        let mut port = address.port();
        while port == 0 || machine.listeners.contains_key(&port) {
            if address.port() != 0 {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            machine.next_port += 1;
            port = machine.next_port;
        }
        machine.listeners.insert(port, Listening::default());
        let address = SocketAddr::new(address_of(host), port);
        Ok((host, address))
    })
}

/// Starts a connection of the current machine.
pub(super) fn connect(to: SocketAddr) -> Option<End> {
    with(|state| {
        let host = state.current.expect("a machine runs");
        let target = (0..state.machines.len()).find(|id| address_of(*id) == to.ip())?;
        state.next_connection += 1;
        let end = End {
            connection: state.next_connection,
            side: 0,
        };
        let machine = &mut state.machines[host];
        machine.next_port = machine.next_port.checked_add(1).unwrap_or(ANY_PORT);
        let from = SocketAddr::new(address_of(host), machine.next_port);
        let socket = Socket {
            host,
            local: Some(from),
            peer: Some(to),
            peer_host: target,
            ..Socket::default()
        };
        state.sockets.insert(end, socket);
        state.send_to_peer(end, Payload::Connect { from, to });
        Some(end)
    })
}

/// Returns whether a connection is established; `None`: not yet.
pub(super) fn is_connected(end: End, waker: &Waker) -> Option<io::Result<()>> {
    with(|state| {
        let Some(socket) = state.sockets.get_mut(&end) else {
            return Some(Err(io::ErrorKind::ConnectionReset.into()));
        };
        if let Some(kind) = socket.broken {
            return Some(Err(kind.into()));
        }
        if socket.is_open {
            return Some(Ok(()));
        }
        socket.reader = Some(waker.clone());
        None
    })
}

pub(super) fn addresses(end: End) -> Option<(SocketAddr, SocketAddr)> {
    with(|state| {
        let socket = state.sockets.get(&end)?;
        Some((socket.local?, socket.peer?))
    })
}

pub(super) fn accept(host: HostId, port: u16, waker: &Waker) -> Option<End> {
    with(|state| {
        let listening = state.machines[host].listeners.get_mut(&port)?;
        let accepted = listening.accepted.pop_front();
        if accepted.is_none() {
            listening.waker = Some(waker.clone());
        }
        accepted
    })
}

pub(super) fn stop_listening(host: HostId, port: u16) {
    with(|state| {
        if let Some(listening) = state.machines[host].listeners.remove(&port) {
            for end in listening.accepted {
                state.send_to_peer(end, Payload::Reset);
                state.sockets.remove(&end);
            }
        }
    });
}

/// Returns at most `most` received bytes, empty at the end of the stream; `None`: none yet.
pub(super) fn read(end: End, most: usize, waker: &Waker) -> Option<io::Result<Vec<u8>>> {
    waking(|state, wakers| {
        let Some(socket) = state.sockets.get_mut(&end) else {
            return Some(Err(io::ErrorKind::ConnectionReset.into()));
        };
        if let Some(kind) = socket.broken {
            return Some(Err(kind.into()));
        }
        if socket.inbox.is_empty() {
            if socket.is_ended {
                return Some(Ok(Vec::new()));
            }
            socket.reader = Some(waker.clone());
            return None;
        }
        let count = most.min(socket.inbox.len());
        let bytes: Vec<u8> = socket.inbox.drain(..count).collect();
        let peer_host = socket.peer_host;
        if let Some(peer) = state.sockets.get_mut(&end.other()) {
            peer.unread_by_peer = peer.unread_by_peer.saturating_sub(count);
            if let Some(writer) = peer.writer.take() {
                wakers.push(writer);
                state.nudge(peer_host);
            }
        }
        Some(Ok(bytes))
    })
}

/// Returns the number of accepted bytes; `None`: none until the other side has read.
pub(super) fn write(end: End, bytes: &[u8], waker: &Waker) -> Option<io::Result<usize>> {
    with(|state| {
        let Some(socket) = state.sockets.get_mut(&end) else {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        };
        if let Some(kind) = socket.broken {
            return Some(Err(kind.into()));
        }
        let count = bytes
            .len()
            .min(WINDOW.saturating_sub(socket.unread_by_peer));
        if count == 0 && !bytes.is_empty() {
            socket.writer = Some(waker.clone());
            return None;
        }
        socket.unread_by_peer += count;
        state.send_to_peer(end, Payload::Bytes(bytes[..count].to_vec()));
        Some(Ok(count))
    })
}

pub(super) fn finish(end: End) {
    with(|state| state.send_to_peer(end, Payload::Fin));
}

/// Closes an end, with a reset if there are unread bytes.
pub(super) fn close(end: End) {
    STATE.with_borrow_mut(|state| {
        let Some(state) = state.as_mut() else { return };
        let is_unread = state
            .sockets
            .get(&end)
            .is_some_and(|socket| !socket.inbox.is_empty() && !socket.is_ended);
        let payload = if is_unread {
            Payload::Reset
        } else {
            Payload::Fin
        };
        state.send_to_peer(end, payload);
        state.sockets.remove(&end);
    });
}
