//! Client and server transactions: RFC 3261 17 with the Accepted states of RFC 6026. Over a reliable transport nothing is repeated, and
//! timers D, I, J and K are zero.
//!
//! A transaction holds the bytes it repeats and says when it next wants to be woken; sending is the endpoint's part.

use std::net::SocketAddr;
use std::time::Duration;

use crate::hop::Hop;
use crate::message::{Method, Request};
use crate::time::Time;
use crate::useragent::{CallKey, Challenged};

/// Round-trip estimate (RFC 3261 17.1.1.1).
pub(crate) const T1: Duration = Duration::from_millis(500);
/// Longest interval between repeated non-INVITE requests and INVITE responses.
pub(crate) const T2: Duration = Duration::from_secs(4);
/// How long a message may stay in the network.
pub(crate) const T4: Duration = Duration::from_secs(5);
/// Timers B, F, H, J, L, M; also how long a 2xx is repeated (RFC 3261 13.3.1.4).
pub(crate) const T1_64: Duration = Duration::from_secs(32);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// Sent; nothing heard. Requests are repeated (timer A or E).
    Trying,
    /// A provisional response came or went.
    Proceeding,
    /// A final response came or went; for INVITE other than 2xx.
    Completed,
    /// Server INVITE: the ACK came, further ones are swallowed (timer I).
    Confirmed,
    /// INVITE: a 2xx came or went (RFC 6026).
    Accepted,
}

/// Action that a due timer asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fired {
    Nothing,
    /// Send the bytes again.
    Repeat,
    /// No answer came in time; the transaction is over.
    TimedOut,
    /// The transaction is over and can be forgotten.
    Gone,
}

/// Action that a response to a client transaction asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// Hand it to the user agent.
    Pass,
    /// As `Pass`, and an ACK has to be made first (RFC 3261 17.1.1.3).
    PassAndAck,
    /// A repetition of a final response: send the ACK again.
    AckAgain,
    /// A repetition that needs nothing: drop it.
    Absorb,
}

/// A request that was sent, until its end.
pub(crate) struct Client {
    pub(crate) call: CallKey,
    pub(crate) request: Request,
    pub(crate) to: Hop,
    /// Bytes of the request, kept for repetitions.
    pub(crate) bytes: Vec<u8>,
    /// Realms whose challenges it answers.
    pub(crate) challenged: Challenged,
    /// It is too large for a datagram: `to` is TCP for that reason alone.
    pub(crate) by_size: bool,
    /// It was sent again, by another connection.
    pub(crate) sent_again: bool,
    /// The ACK to a failure, once made.
    pub(crate) ack: Vec<u8>,
    state: State,
    interval: Duration,
    repeat: Option<Time>,
    deadline: Option<Time>,
}

impl Client {
    /// Begins; the bytes are to be sent now.
    pub(crate) fn new(now: Time, call: CallKey, request: Request, to: Hop) -> Client {
        let bytes = request.to_bytes();
        let repeat = (!to.transport.is_reliable()).then_some(now + T1);
        Client {
            call,
            request,
            to,
            bytes,
            challenged: Challenged::new(),
            by_size: false,
            sent_again: false,
            ack: Vec::new(),
            state: State::Trying,
            interval: T1,
            repeat,
            deadline: Some(now + T1_64),
        }
    }

    /// Returns the place that its dialog has to do with.
    pub(crate) fn hop(&self) -> Hop {
        if self.by_size { Hop::udp(self.to.address) } else { self.to.clone() }
    }

    /// Goes to another place, as the same transaction: the Via tells the transport and this side's address there (RFC 3261 18.1.1).
    pub(crate) fn move_to(&mut self, now: Time, to: Hop, local: SocketAddr) {
        if let Ok(via) = self.request.headers.top_via() {
            let value = format!("SIP/2.0/{} {local}{}", to.transport, via.params);
            self.request.headers.set("Via", value);
        }
        self.bytes = self.request.to_bytes();
        self.interval = T1;
        self.repeat = (!to.transport.is_reliable()).then_some(now + T1);
        self.to = to;
    }

    /// Waits no longer than until `at` for the first response.
    pub(crate) fn give_up_by(&mut self, at: Time) {
        if self.state == State::Trying {
            self.deadline = self.deadline.map(|deadline| deadline.min(at));
        }
    }

    fn invite(&self) -> bool {
        self.request.method == Method::Invite
    }

    /// Time of the next timer; `None` when none runs.
    pub(crate) fn due(&self) -> Option<Time> {
        self.repeat.into_iter().chain(self.deadline).min()
    }

    /// True while a final response is expected.
    pub(crate) fn open(&self) -> bool {
        matches!(self.state, State::Trying | State::Proceeding)
    }

    /// True when no response has come at all.
    pub(crate) fn unanswered(&self) -> bool {
        self.state == State::Trying
    }

    /// Sets the time for a final response after a CANCEL to 64 T1 (RFC 3261 9.1).
    pub(crate) fn cancelled(&mut self, now: Time) {
        if self.open() {
            self.deadline = Some(now + T1_64);
        }
    }

    /// Handles a response with this code and returns the action it asks for.
    pub(crate) fn response(&mut self, now: Time, code: u16) -> Heard {
        match (self.state, code) {
            (State::Trying, 100..200) if self.invite() => {
                (self.repeat, self.deadline) = (None, None);
                self.state = State::Proceeding;
                Heard::Pass
            }
            (State::Trying, 100..200) => {
                self.interval = T2;
                self.state = State::Proceeding;
                Heard::Pass
            }
            (State::Proceeding, 100..200) => Heard::Pass,
            (State::Trying | State::Proceeding, _) => {
                self.repeat = None;
                let over = |span| if self.to.transport.is_reliable() { Duration::ZERO } else { span };
                let (state, linger, heard) = match (self.invite(), code) {
                    (true, 200..300) => (State::Accepted, T1_64, Heard::Pass),
                    (true, _) => (State::Completed, over(T1_64), Heard::PassAndAck),
                    (false, _) => (State::Completed, over(T4), Heard::Pass),
                };
                self.state = state;
                self.deadline = Some(now + linger);
                heard
            }
            (State::Accepted, 200..300) => Heard::Pass,
            (State::Completed, 300..) if self.invite() => Heard::AckAgain,
            _ => Heard::Absorb,
        }
    }

    /// The time has come.
    pub(crate) fn timer(&mut self, now: Time) -> Fired {
        if self.deadline.is_some_and(|at| at <= now) {
            return if self.open() { Fired::TimedOut } else { Fired::Gone };
        }
        if self.repeat.is_none_or(|at| at > now) {
            return Fired::Nothing;
        }
        self.interval = if self.invite() { self.interval * 2 } else { (self.interval * 2).min(T2) };
        self.repeat = Some(now + self.interval);
        Fired::Repeat
    }
}

/// A request that was received, until its end.
pub(crate) struct Server {
    pub(crate) call: Option<CallKey>,
    pub(crate) request: Request,
    /// Place that responses go to (RFC 3261 18.2.2, RFC 3581).
    pub(crate) to: Hop,
    /// The last response; empty before the first.
    pub(crate) bytes: Vec<u8>,
    /// A refusal is not repeated by itself.
    pub(crate) is_sparing: bool,
    state: State,
    interval: Duration,
    repeat: Option<Time>,
    deadline: Option<Time>,
}

impl Server {
    /// Starts the transaction of a received request (RFC 3261 17.2).
    pub(crate) fn new(request: Request, to: Hop) -> Server {
        Server {
            call: None,
            request,
            to,
            bytes: Vec::new(),
            is_sparing: false,
            state: State::Proceeding,
            interval: T1,
            repeat: None,
            deadline: None,
        }
    }

    /// Time of the next timer; `None` when none runs.
    pub(crate) fn due(&self) -> Option<Time> {
        self.repeat.into_iter().chain(self.deadline).min()
    }

    /// True until a final response is sent.
    pub(crate) fn open(&self) -> bool {
        self.state == State::Proceeding
    }

    /// Records a response that goes out. A 2xx to INVITE is repeated by the user agent, every other final response to
    /// INVITE by this.
    pub(crate) fn send(&mut self, now: Time, code: u16, bytes: Vec<u8>) {
        self.bytes = bytes;
        if code < 200 || !self.open() {
            return;
        }
        let (invite, reliable) = (self.request.method == Method::Invite, self.to.transport.is_reliable());
        self.deadline = Some(if invite || !reliable { now + T1_64 } else { now });
        if invite && code < 300 {
            self.state = State::Accepted;
        } else {
            self.state = State::Completed;
            self.repeat = (invite && !reliable && !self.is_sparing).then_some(now + T1);
        }
    }

    /// The request came again: whether the last response is to be repeated.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.state, State::Proceeding | State::Completed) && !self.bytes.is_empty()
    }

    /// An ACK with this transaction's branch came: whether it is for a failure, and so ends here.
    pub(crate) fn ack(&mut self, now: Time) -> bool {
        if self.state == State::Completed {
            self.state = State::Confirmed;
            self.repeat = None;
            self.deadline = Some(if self.to.transport.is_reliable() { now } else { now + T4 });
        }
        self.state == State::Confirmed
    }

    /// The time has come.
    pub(crate) fn timer(&mut self, now: Time) -> Fired {
        if self.deadline.is_some_and(|at| at <= now) {
            return Fired::Gone;
        }
        if self.repeat.is_none_or(|at| at > now) {
            return Fired::Nothing;
        }
        self.interval = (self.interval * 2).min(T2);
        self.repeat = Some(now + self.interval);
        Fired::Repeat
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::hop::Transport;

    /// The milliseconds at which the bytes are repeated, and how and when the transaction ends.
    fn run(
        due: &dyn Fn(&mut (Client, Server)) -> Option<Time>,
        both: &mut (Client, Server),
        server: bool,
    ) -> (Vec<u64>, Fired, u64) {
        let mut sent = Vec::new();
        while let Some(at) = due(both) {
            let fired = if server { both.1.timer(at) } else { both.0.timer(at) };
            match fired {
                Fired::Repeat => sent.push(at.0 / 1_000_000),
                Fired::Nothing => panic!("woken for nothing"),
                end => return (sent, end, at.0 / 1_000_000),
            }
        }
        (sent, Fired::Nothing, 0)
    }

    #[test]
    fn timers_run_as_the_table_says() {
        let check = |transport, server: bool, method: Method, code: Option<u16>, expect: (&[u64], Fired, u64)| {
            let to = Hop::new(transport, (Ipv4Addr::LOCALHOST, 5060).into());
            let request = Request::new(method.clone(), "sip:a@b");
            let now = Time(0);
            let mut both =
                (Client::new(now, CallKey(1), request.clone(), to.clone()), Server::new(request, to.clone()));
            if let Some(code) = code {
                both.0.response(now, code);
                both.1.send(now, code, vec![1]);
            }
            let got = run(&|b| if server { b.1.due() } else { b.0.due() }, &mut both, server);
            assert_eq!((got.0.as_slice(), got.1, got.2), expect, "{transport} {server} {method} {code:?}");
        };
        let udp = Transport::Udp;
        // A and B; E and F; D; K; M.
        check(udp, false, Method::Invite, None, (&[500, 1500, 3500, 7500, 15500, 31500], Fired::TimedOut, 32000));
        let every = [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500];
        check(udp, false, Method::Bye, None, (&every, Fired::TimedOut, 32000));
        check(udp, false, Method::Invite, Some(180), (&[], Fired::Nothing, 0));
        check(udp, false, Method::Invite, Some(486), (&[], Fired::Gone, 32000));
        check(udp, false, Method::Invite, Some(200), (&[], Fired::Gone, 32000));
        check(udp, false, Method::Bye, Some(200), (&[], Fired::Gone, 5000));
        // G and H; J; L.
        check(udp, true, Method::Invite, Some(486), (&every, Fired::Gone, 32000));
        check(udp, true, Method::Invite, Some(200), (&[], Fired::Gone, 32000));
        check(udp, true, Method::Bye, Some(200), (&[], Fired::Gone, 32000));
        // Nothing is repeated and D, J and K are zero; B, F, H, L and M run.
        for stream in [Transport::Tcp, Transport::Tls] {
            check(stream, false, Method::Invite, None, (&[], Fired::TimedOut, 32000));
            check(stream, false, Method::Bye, None, (&[], Fired::TimedOut, 32000));
            check(stream, false, Method::Bye, Some(100), (&[], Fired::TimedOut, 32000));
            check(stream, false, Method::Invite, Some(486), (&[], Fired::Gone, 0));
            check(stream, false, Method::Bye, Some(200), (&[], Fired::Gone, 0));
            check(stream, false, Method::Invite, Some(200), (&[], Fired::Gone, 32000));
            check(stream, true, Method::Invite, Some(486), (&[], Fired::Gone, 32000));
            check(stream, true, Method::Invite, Some(200), (&[], Fired::Gone, 32000));
            check(stream, true, Method::Bye, Some(200), (&[], Fired::Gone, 0));
            // I.
            let to = Hop::new(stream, (Ipv4Addr::LOCALHOST, 5060).into());
            let mut server = Server::new(Request::new(Method::Invite, "sip:a@b"), to);
            server.send(Time(0), 486, vec![1]);
            assert!(server.ack(Time(7)) && server.due() == Some(Time(7)), "{stream}");
        }
    }
}
