//! Lines to providers at the SIP sockets: each is kept registered and asked whether it answers, and tells how it
//! stands.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use ringer_base::clock::{Clock, random_seed};
use ringer_base::config::SipListen;
use ringer_base::guard::Guard;
use ringer_base::tasks::Tasks;
use ringer_sip::registration::{Account, Line, LineOutput, Places, Standing, State};
use ringer_sip::{ConnectionId, Hop, Time, Uri};
use tokio::sync::mpsc;

use super::names::Resolver;
use super::streams::Hold;

/// Look-ups that may be under way at the same time; further ones wait.
const LOOK_UPS: usize = 64;
/// Bytes of a message within which CSeq and Call-ID are looked for before it is parsed.
pub(super) const HEAD_BYTES: usize = 4096;

/// A line that the driver keeps registered and asks whether it answers.
#[derive(Clone, Debug)]
pub struct LineTerms {
    /// Name in the settings.
    pub name: String,
    /// Registrar, credentials and intervals. Its addresses of this side are those of the sockets.
    pub account: Account,
}

impl LineTerms {
    /// Returns the same at these sockets.
    pub(super) fn at(mut self, local: &SipListen) -> LineTerms {
        let SipListen { udp, tcp, tls } = *local;
        self.account.local = Places { udp: udp.unwrap_or(local.first()), tcp, tls };
        self
    }
}

/// Standing of one line as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineReport {
    /// Name in the settings.
    pub name: String,
    /// Standing of the registration; `None`: the line is not registered.
    pub registration: Option<LineStanding>,
    /// Standing by OPTIONS; `None`: none are sent.
    pub keepalive: Option<LineStanding>,
    /// Hosts of the provider that are known.
    pub hosts: Vec<IpAddr>,
}

/// Standing of a line in one respect as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineStanding {
    /// Standing of this moment.
    pub standing: Standing,
    /// Beginning of that standing, milliseconds since the epoch.
    pub since_ms: i64,
    /// Error that came last; it stays when all is well again.
    pub error: Option<String>,
}

/// Standing of every line, and messages of strangers, for whoever wants to look. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LineBoard {
    lines: Arc<Mutex<Vec<LineReport>>>,
    strangers_limited: Arc<AtomicU64>,
}

impl LineBoard {
    /// Returns the standing of every line, in the order of their names.
    pub fn reports(&self) -> Vec<LineReport> {
        self.lines.lock().clone()
    }

    /// Returns the name of the line whose provider has this host.
    pub fn line_at(&self, host: IpAddr) -> Option<String> {
        let lines = self.lines.lock();
        let has = |line: &&LineReport| line.hosts.contains(&host.to_canonical());
        lines.iter().find(has).map(|line| line.name.clone())
    }

    /// True if the provider of the line with this name has this host.
    pub fn is_at(&self, name: &str, host: IpAddr) -> bool {
        let host = host.to_canonical();
        self.lines.lock().iter().any(|line| line.name == name && line.hosts.contains(&host))
    }

    /// Returns the number of messages of strangers that were dropped because there were too many.
    pub fn count_limited(&self) -> u64 {
        self.strangers_limited.load(Ordering::Relaxed)
    }

    pub(super) fn note_limited(&self) {
        self.strangers_limited.fetch_add(1, Ordering::Relaxed);
    }
}

/// A look-up that has ended: of which line, of what, with which result.
pub(super) struct Found {
    line: usize,
    uri: Uri,
    hops: Result<Vec<Hop>, String>,
}

/// Every line of one endpoint.
pub(super) struct Lines {
    lines: Vec<KeptLine>,
    /// Names of the lines whose registrations are kept; `None`: all.
    registered: Option<BTreeSet<String>>,
    resolver: Resolver,
    clock: Clock,
    tasks: Tasks,
    finder: mpsc::Sender<Found>,
    found: mpsc::Receiver<Found>,
    board: LineBoard,
    hosts: HashSet<IpAddr>,
    /// True if something has changed since the last look.
    is_new: bool,
}

struct KeptLine {
    name: String,
    account: Account,
    line: Line,
    /// True while the registration is kept, where there is one.
    is_registered: bool,
    /// True while the registration is taken back.
    is_leaving: bool,
    /// The connection of the registration, which stays open.
    hold: Option<(ConnectionId, Hold)>,
}

impl Lines {
    pub(super) fn new(board: LineBoard, tasks: &Tasks) -> Lines {
        let (finder, found) = mpsc::channel(LOOK_UPS);
        let (lines, hosts) = (Vec::new(), HashSet::new());
        let (resolver, tasks) = (Resolver::default(), tasks.clone());
        let clock = Clock::Real;
        Lines { lines, registered: None, resolver, clock, tasks, finder, found, board, hosts, is_new: false }
    }

    /// Begins to keep these lines. `draw` gives each a seed.
    pub(super) fn begin(
        &mut self,
        now: Time,
        terms: Vec<LineTerms>,
        (resolver, clock): (Resolver, Clock),
        mut draw: impl FnMut() -> u64,
    ) {
        (self.resolver, self.clock) = (resolver, clock);
        let registered = self.registered.clone();
        let kept = |LineTerms { name, account }: LineTerms| {
            let is_registered = registered.as_ref().is_none_or(|names| names.contains(&name));
            let expires_s = account.expires_s.filter(|_| is_registered);
            let line = Line::new(now, Account { expires_s, ..account.clone() }, draw());
            KeptLine { name, account, line, is_registered, is_leaving: false, hold: None }
        };
        self.lines.extend(terms.into_iter().map(kept));
        self.is_new = true;
    }

    /// Keeps the registrations of these lines from now on, and takes the others back. Whether a line answers is asked
    /// either way. `draw` gives each a seed.
    pub(super) fn register(&mut self, now: Time, names: &BTreeSet<String>, mut draw: impl FnMut() -> u64) {
        self.registered = Some(names.clone());
        for kept in self.lines.iter_mut().filter(|kept| kept.account.expires_s.is_some()) {
            let is_wanted = names.contains(&kept.name);
            if is_wanted == kept.is_registered {
                continue;
            }
            kept.is_registered = is_wanted;
            kept.is_leaving = !is_wanted;
            match is_wanted {
                true => (kept.line, kept.hold) = (Line::new(now, kept.account.clone(), draw()), None),
                false => kept.line.leave(now),
            }
            self.is_new = true;
        }
        self.end_leaving(now);
    }

    /// Keeps a line without its registration once that is taken back.
    fn end_leaving(&mut self, now: Time) {
        for kept in self.lines.iter_mut().filter(|kept| kept.is_leaving && kept.line.is_over()) {
            let account = Account { expires_s: None, ..kept.account.clone() };
            (kept.line, kept.hold, kept.is_leaving) = (Line::new(now, account, random_seed()), None, false);
            self.is_new = true;
        }
    }

    /// Waits for the end of a look-up; for ever where there is none.
    pub(super) async fn next(&mut self) -> Found {
        match self.found.recv().await {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }

    /// Takes the end of a look-up.
    pub(super) fn take_places(&mut self, now: Time, found: Found) {
        if let Some(kept) = self.lines.get_mut(found.line) {
            kept.line.take_places(now, &found.uri, found.hops);
            self.is_new = true;
        }
    }

    /// Takes a message that is a response to a request of a line. False for every other.
    pub(super) fn receive(&mut self, now: Time, from: &Hop, bytes: &[u8]) -> bool {
        if self.lines.is_empty() || !is_of_line(bytes) {
            return false;
        }
        self.is_new = true;
        let is_taken = self.lines.iter_mut().any(|kept| kept.line.receive(now, from, bytes));
        self.end_leaving(now);
        is_taken
    }

    /// Takes that nothing can be delivered to `to`.
    pub(super) fn unreachable(&mut self, now: Time, to: &Hop, why: &str) {
        self.lines.iter_mut().for_each(|kept| kept.line.unreachable(now, to, why));
        self.is_new |= !self.lines.is_empty();
    }

    /// Takes that a connection is closed.
    pub(super) fn connection_lost(&mut self, now: Time, connection: ConnectionId, why: &str) {
        for kept in &mut self.lines {
            kept.hold.take_if(|(held, _)| *held == connection);
            kept.line.connection_lost(now, connection, why);
        }
        self.is_new |= !self.lines.is_empty();
    }

    /// Runs what is due.
    pub(super) fn tick(&mut self, now: Time) {
        for kept in self.lines.iter_mut().filter(|kept| kept.line.next_timer().is_some_and(|at| at <= now)) {
            kept.line.tick(now);
            self.is_new = true;
        }
        self.end_leaving(now);
    }

    /// Returns the time at which `tick` is wanted next.
    pub(super) fn next_timer(&self) -> Option<Time> {
        self.lines.iter().filter_map(|kept| kept.line.next_timer()).min()
    }

    /// Takes every registration back.
    pub(super) fn leave(&mut self, now: Time) {
        for kept in &mut self.lines {
            // What is taken back already goes on to be.
            if !std::mem::take(&mut kept.is_leaving) {
                kept.line.leave(now);
            }
        }
    }

    /// True once every registration is taken back, or was given up.
    pub(super) fn is_over(&self) -> bool {
        self.lines.iter().all(|kept| kept.line.is_over())
    }

    /// Returns the next message to send, with the number of its line. Look-ups begin by themselves.
    pub(super) fn poll(&mut self) -> Option<(usize, Hop, Vec<u8>)> {
        for at in 0..self.lines.len() {
            while let Some(output) = self.lines[at].line.poll() {
                match output {
                    LineOutput::Send { to, bytes } => return Some((at, to, bytes)),
                    LineOutput::Locate(uri) => self.look_up(at, uri),
                }
            }
        }
        None
    }

    /// Takes the connection that a message of a line went over.
    pub(super) fn sent_over(
        &mut self,
        line: usize,
        to: &Hop,
        (connection, is_new): (ConnectionId, bool),
        hold: Option<Hold>,
    ) {
        let Some(kept) = self.lines.get_mut(line) else { return };
        kept.line.sent_over(to, connection, is_new);
        kept.hold = hold.map(|hold| (connection, hold));
    }

    /// True for a host of a provider.
    pub(super) fn has_host(&self, host: IpAddr) -> bool {
        self.hosts.contains(&host.to_canonical())
    }

    /// Shows how the lines stand, when that may have changed. Returns the ways of the registrations on which this side
    /// is seen at another address than its own; `None` where nothing has changed.
    pub(super) fn publish(&mut self) -> Option<Vec<(Hop, SocketAddr)>> {
        if !std::mem::take(&mut self.is_new) {
            return None;
        }
        let now_ms = self.clock.now_ms();
        let mut shown = self.board.lines.lock();
        let reports = self.lines.iter().map(|kept| {
            let before = shown.iter().find(|shown| shown.name == kept.name);
            let report = report(kept, before, now_ms);
            log(&report, before);
            report
        });
        *shown = reports.collect();
        self.hosts = shown.iter().flat_map(|report| report.hosts.iter().copied()).collect();
        let flows = self.lines.iter().filter_map(|kept| kept.line.flow());
        Some(flows.filter_map(|(flow, seen)| Some((flow.clone(), seen?))).collect())
    }

    /// Looks up the hops of `uri`, without a guard: whoever sets the engine up chooses where its lines go.
    fn look_up(&self, line: usize, uri: Uri) {
        let (resolver, finder) = (self.resolver.clone(), self.finder.clone());
        self.tasks.spawn_until_stop("look-up of a line", async move {
            let hops = resolver.hops(&uri, &Guard::new(true)).await;
            let hops = hops.map_err(|lost| format!("the host of {:?} {lost}", uri.to_string()));
            let _ = finder.send(Found { line, uri, hops }).await;
        });
    }
}

fn report(kept: &KeptLine, before: Option<&LineReport>, now_ms: i64) -> LineReport {
    let shown = |state: &State, before: Option<&LineStanding>| {
        let same = before.filter(|before| before.standing == state.standing);
        let since_ms = same.map_or(now_ms, |before| before.since_ms);
        LineStanding { standing: state.standing, since_ms, error: state.error.clone() }
    };
    let of_registration = before.and_then(|before| before.registration.as_ref());
    let of_keepalive = before.and_then(|before| before.keepalive.as_ref());
    let registration = kept.line.registration().map(|state| shown(state, of_registration));
    let keepalive = kept.line.keepalive().map(|state| shown(state, of_keepalive));
    let mut hosts: Vec<IpAddr> = kept.line.places().map(|hop| hop.address.ip().to_canonical()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    LineReport { name: kept.name.clone(), registration, keepalive, hosts }
}

/// Logs a standing that has changed.
fn log(report: &LineReport, before: Option<&LineReport>) {
    let of = |line: Option<&LineReport>| {
        let line = line.cloned().unwrap_or_default();
        [("registration", line.registration), ("keep-alive", line.keepalive)]
    };
    for ((what, now), (_, before)) in of(Some(report)).into_iter().zip(of(before)) {
        let standing = |line: &Option<LineStanding>| line.as_ref().map(|line| line.standing).unwrap_or_default();
        let (Some(line), trunk) = (&now, report.name.as_str()) else { continue };
        if standing(&now) == standing(&before) {
            continue;
        }
        match line.standing {
            Standing::Down => {
                let why = line.error.as_deref().unwrap_or_default();
                tracing::warn!(trunk, what, why, "a trunk is down");
            }
            Standing::Up => tracing::info!(trunk, what, "a trunk is up"),
            Standing::Unknown => tracing::info!(trunk, what, "the state of a trunk is unknown"),
        }
    }
}

/// True for a response to REGISTER or OPTIONS, which calls never send.
fn is_of_line(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let is_cseq = |line: &&[u8]| line.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"cseq"));
    let cseq = || head.split(|byte| *byte == b'\n').find(is_cseq);
    let method = |line: &[u8]| {
        let line = line.trim_ascii_end();
        line.ends_with(b"REGISTER") || line.ends_with(b"OPTIONS")
    };
    head.starts_with(b"SIP/2.0 ") && cseq().is_some_and(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_lines_are_told_from_those_to_calls() {
        for (message, expect) in [
            (&b"SIP/2.0 200 OK\r\nCSeq: 7 REGISTER\r\n\r\n"[..], true),
            (b"SIP/2.0 200 OK\r\ncseq : 7 OPTIONS \r\n\r\n", true),
            (b"SIP/2.0 200 OK\r\nCSeq: 7 INVITE\r\n\r\n", false),
            (b"SIP/2.0 200 OK\r\n\r\n", false),
            (b"OPTIONS sip:a SIP/2.0\r\nCSeq: 7 OPTIONS\r\n\r\n", false),
            (b"", false),
        ] {
            assert_eq!(is_of_line(message), expect, "{}", String::from_utf8_lossy(message));
        }
    }
}
