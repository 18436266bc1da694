//! Packets between the rings of a call and its peer connections, until the media thread takes the connections over.
//! From then on the pump tells it of their paths.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::clock::monotonic;
use ringer_media::call::MediaChannel;
use ringer_media::call::pacing::Pacing;
use ringer_media::packet_rings::PacketPeer;
use tokio::sync::{Notify, mpsc};

use super::direct::{DirectOrder, Passing, PeerWay, Role};
use super::sources::{exchange_reported, exchange_reporters, exchange_source};
use super::voices::Voices;
use super::{Arrived, MediaPeer, MediaRoute};

/// Time after which a packet that did not fit is tried again, where the call sends nothing that would wake the pump.
const AGAIN: Duration = Duration::from_millis(20);

/// Lateness from which on a packet counts as late.
const LATE: Duration = Duration::from_millis(20);

/// Time between looks at the path in use, where nothing tells of a change.
const LOOKS: Duration = Duration::from_secs(1);

/// The bell by which a media thread wakes the task of a channel.
#[derive(Debug, Default)]
pub struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Bell {
    /// Returns the media thread's end.
    pub fn waker(self: &Arc<Bell>) -> Waker {
        self.clone().into()
    }
}

/// The connections of a call, and the tracks that are heard.
#[derive(Copy, Clone)]
pub struct Lines<'a> {
    /// The call's media leave by it, and come by it unless there is `ear`.
    pub main: &'a dyn MediaPeer,
    /// The call's media come by it alone.
    pub ear: Option<&'a dyn MediaPeer>,
    /// Tracks that are heard; `None`: all that comes is.
    pub hearing: Option<&'a Hearing>,
}

impl<'a> Lines<'a> {
    fn all(self) -> impl Iterator<Item = (Role, &'a dyn MediaPeer)> {
        [(Role::Main, Some(self.main)), (Role::Ear, self.ear)]
            .into_iter()
            .filter_map(|(role, peer)| Some((role, peer?)))
    }
}

/// Tracks on their way to whoever hears them: the newest ones.
#[derive(Default)]
pub struct Hearing {
    next: Mutex<Option<Box<Voices>>>,
    changed: Notify,
}

impl Hearing {
    /// Sets the tracks that are heard from now on.
    pub(crate) fn set(&self, mut voices: Box<Voices>) {
        let mut next = self.next.lock();
        if let Some(before) = &mut *next {
            voices.go_on_from(before);
        }
        *next = Some(voices);
        self.changed.notify_one();
    }
}

/// A connection that the media thread has taken over.
struct Taken {
    /// Source on the wire, which no other connection of the call has.
    ssrc: u32,
    route: (SocketAddr, SocketAddr),
    passing: Arc<Passing>,
}

/// The pump of one call; it outlives a peer connection that is replaced.
pub struct Pump {
    rings: PacketPeer,
    bell: Arc<Bell>,
    /// Source of the call's leg, once it has sent.
    leg: Option<[u8; 4]>,
    /// Packet that waits for space. A network that was held up brings many at once, and those behind it wait in their
    /// queue.
    waiting: Option<Arrived>,
    pacing: Pacing,
    late: u64,
    /// Way by which the media thread takes a connection over; `None`: the library carries all of it.
    way: Option<PeerWay>,
    /// Connections that the media thread has taken over, by their use.
    taken: [Option<Taken>; 2],
    /// Tracks that are heard, where everything passes here.
    voices: Option<Box<Voices>>,
}

/// Outcome of a look at the paths.
enum Looked {
    /// The next look may be as late as any.
    Done,
    /// The media thread could take over more very soon.
    Soon,
    /// A path has become one that the media thread cannot follow.
    Over,
}

/// Flow of media past the library. It stops once the task of the connections does something else.
#[derive(Default)]
struct Flow([Option<Arc<Passing>>; 2]);

impl Drop for Flow {
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(|passing| passing.flows.store(false, Ordering::Relaxed));
    }
}

/// Figures of a pump since it began.
#[derive(Clone, Debug, Default)]
pub struct PumpFigures {
    /// Time between the moment at which a packet was due and the one at which it left.
    pub pacing: Pacing,
    /// Packets that left more than 20 ms late.
    pub late: u64,
    /// Packets of the other side that the call did not take in time.
    pub lost: u64,
}

impl Pump {
    /// Returns a pump of the rings that `bell` was given to, through which everything passes.
    pub fn new(rings: PacketPeer, bell: Arc<Bell>) -> Pump {
        let (pacing, late) = (Pacing::default(), 0);
        let (way, taken, voices) = (None, [None, None], None);
        Pump { rings, bell, leg: None, waiting: None, pacing, late, way, taken, voices }
    }

    /// Returns the same, where the media thread takes connections over by `way`.
    pub fn with_way(rings: PacketPeer, bell: Arc<Bell>, way: PeerWay) -> Pump {
        Pump { way: Some(way), ..Pump::new(rings, bell) }
    }

    /// Moves packets both ways until the connection tells no more of them, or its media would have to pass by a relay
    /// after they have passed by none. It can be dropped and begun anew at any time.
    pub async fn run(&mut self, peer: &dyn MediaPeer, packets: &mut mpsc::Receiver<Arrived>) {
        self.run_lines(Lines { main: peer, ear: None, hearing: None }, packets).await;
    }

    /// Does the same for several connections. `packets` are those of all that are heard.
    pub async fn run_lines(&mut self, lines: Lines<'_>, packets: &mut mpsc::Receiver<Arrived>) {
        let wire = lines.main.ssrc().to_be_bytes();
        let mut flow = Flow::default();
        self.begin(lines, &mut flow);
        let mut looks = tokio::time::interval(LOOKS);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.send_all(lines.main, wire).await;
            self.hear(lines.hearing);
            if self.rings.has_space()
                && let Some(arrived) = self.waiting.take()
            {
                self.receive(arrived, wire);
            }
            let has_way = self.way.is_some();
            let must_look = tokio::select! {
                arrived = packets.recv(), if self.waiting.is_none() => {
                    let Some(arrived) = arrived else { return };
                    // Tracks that were set before it came are told before it.
                    self.hear(lines.hearing);
                    if self.rings.has_space() {
                        self.receive(arrived, wire);
                    } else {
                        self.waiting = Some(arrived);
                    }
                    false
                }
                () = self.bell.0.notified() => false,
                () = tokio::time::sleep(AGAIN), if self.waiting.is_some() => false,
                () = next_tracks(lines.hearing) => false,
                () = path_change(lines), if has_way => true,
                _ = looks.tick(), if has_way => true,
            };
            if !must_look {
                continue;
            }
            let is_drained = self.waiting.is_none() && packets.is_empty();
            match self.look(lines, &mut flow, is_drained).await {
                Looked::Over => return,
                Looked::Soon => looks.reset_after(AGAIN),
                Looked::Done => {}
            }
        }
    }

    /// Resumes the flow of the connections, and leaves those that they replace.
    fn begin(&mut self, lines: Lines<'_>, flow: &mut Flow) {
        for (at, role) in Role::ALL.into_iter().enumerate() {
            let peer = lines.all().find(|line| line.0 == role);
            let Some(taken) = &self.taken[at] else { continue };
            if peer.is_some_and(|(_, peer)| peer.ssrc() == taken.ssrc) {
                taken.passing.flows.store(true, Ordering::Relaxed);
                flow.0[at] = Some(taken.passing.clone());
            } else {
                self.taken[at] = None;
                self.order(DirectOrder::Leave(role));
            }
        }
    }

    fn order(&mut self, order: DirectOrder) -> bool {
        self.free_retired();
        self.way.as_mut().is_some_and(|way| way.orders.push(order).is_ok())
    }

    /// Frees everything that the media thread has no use for any more, such as sockets.
    fn free_retired(&mut self) {
        while self.way.as_mut().is_some_and(|way| way.retired.pop().is_ok()) {}
    }

    /// Passes the tracks on that were set last.
    fn hear(&mut self, hearing: Option<&Hearing>) {
        let Some(hearing) = hearing else { return };
        if self.way.as_ref().is_some_and(|way| way.orders.is_full()) {
            // The next packet, or look, tries again.
            return;
        }
        let Some(mut voices) = hearing.next.lock().take() else { return };
        if self.way.is_some() {
            self.order(DirectOrder::Hear(voices));
            return;
        }
        if let Some(before) = &mut self.voices {
            voices.go_on_from(before);
        }
        self.voices = Some(voices);
    }

    /// Hands connections to the media thread once that can be, and tells it of their paths. `is_drained`: no packet
    /// waits that is earlier than those which the media thread would read.
    async fn look(&mut self, lines: Lines<'_>, flow: &mut Flow, is_drained: bool) -> Looked {
        let mut looked = Looked::Done;
        self.free_retired();
        for (role, peer) in lines.all() {
            let (at, route) = (role as usize, peer.route().await);
            if let Some(taken) = &self.taken[at] {
                taken.passing.has_path.store(route != MediaRoute::Lost, Ordering::Relaxed);
            }
            match (&mut self.taken[at], route) {
                (None, MediaRoute::Direct(..)) if !is_drained => looked = Looked::Soon,
                (None, MediaRoute::Direct(..)) => {
                    let Some((direct, route)) = peer.take_over(self.leg).await else { continue };
                    let passing = direct.passing.clone();
                    if self.order(DirectOrder::Take(role, direct)) {
                        self.taken[at] = Some(Taken { ssrc: peer.ssrc(), route, passing: passing.clone() });
                        flow.0[at] = Some(passing);
                    }
                }
                (Some(taken), MediaRoute::Direct(here, there)) if taken.route != (here, there) => {
                    let is_elsewhere = taken.route.0 != here;
                    let socket = if is_elsewhere { peer.media_socket(here) } else { None };
                    if !is_elsewhere || socket.is_some() {
                        taken.route = (here, there);
                        self.order(DirectOrder::Route(role, socket, there));
                    }
                }
                (Some(_), MediaRoute::Relayed) => return Looked::Over,
                _ => {}
            }
        }
        looked
    }

    /// Returns the figures up to now.
    pub fn figures(&self) -> PumpFigures {
        PumpFigures { pacing: self.pacing.clone(), late: self.late, lost: self.rings.lost_packets() }
    }

    async fn send_all(&mut self, peer: &dyn MediaPeer, wire: [u8; 4]) {
        while let Some(mut packet) = self.rings.next_packet() {
            let sent = match packet.path {
                MediaChannel::Rtp => {
                    self.leg = exchange_source(packet.bytes_mut(), wire).or(self.leg);
                    let late = monotonic().since(packet.at);
                    self.pacing.record_sent(late);
                    self.late += u64::from(late > LATE);
                    peer.send_packet(packet.bytes()).await
                }
                MediaChannel::Rtcp => {
                    exchange_reporters(packet.bytes_mut(), wire);
                    peer.send_report(packet.bytes()).await
                }
            };
            if let Err(fault) = sent {
                tracing::debug!(%fault, "a packet was not sent");
            }
        }
    }

    fn receive(&mut self, mut arrived: Arrived, wire: [u8; 4]) {
        let path = if arrived.is_report { MediaChannel::Rtcp } else { MediaChannel::Rtp };
        if let Some(leg) = self.leg.filter(|_| arrived.is_report) {
            exchange_reported(&mut arrived.bytes, wire, leg);
        }
        let (rings, at) = (&mut self.rings, arrived.at);
        match (&mut self.voices, path) {
            (Some(voices), MediaChannel::Rtp) => {
                voices.take(at, &mut arrived.bytes, &mut |bytes| {
                    rings.receive(at, path, bytes);
                });
            }
            (Some(voices), MediaChannel::Rtcp) if !voices.take_report(&mut arrived.bytes) => {}
            _ => {
                rings.receive(at, path, &arrived.bytes);
            }
        }
    }
}

/// Waits until other tracks are set.
async fn next_tracks(hearing: Option<&Hearing>) {
    match hearing {
        Some(hearing) => hearing.changed.notified().await,
        None => pending().await,
    }
}

/// Waits until a path may have become another.
async fn path_change(lines: Lines<'_>) {
    let ear = async {
        match lines.ear {
            Some(peer) => peer.path_change().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = lines.main.path_change() => {}
        () = ear => {}
    }
}
