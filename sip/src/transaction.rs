//! Client and server transactions: RFC 3261 17 with the Accepted states of RFC 6026. Over a reliable transport nothing
//! is repeated, and timers D, I, J and K are zero.
//!
//! A transaction keeps the bytes that it repeats and the time of its next timer; the endpoint sends.

use std::net::SocketAddr;
use std::time::Duration;

use crate::auth::Challenged;
use crate::hop::Hop;
use crate::ids::CallKey;
use crate::message::{Method, Request};
use crate::time::Time;

/// Round-trip estimate T1 (RFC 3261 17.1.1.1).
pub(crate) const T1: Duration = Duration::from_millis(500);
/// Longest interval between repeated non-INVITE requests and INVITE responses.
pub(crate) const T2: Duration = Duration::from_secs(4);
/// Longest time that a message stays in the network, T4.
pub(crate) const T4: Duration = Duration::from_secs(5);
/// Length of timers B, F, H, J, L, M; a 2xx is repeated for as long (RFC 3261 13.3.1.4).
pub(crate) const T1_64: Duration = Duration::from_secs(32);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// The request was sent, and no response came. It is repeated (timer A or E).
    Trying,
    /// A provisional response was received or sent.
    Proceeding,
    /// A final response was received or sent; for INVITE other than 2xx.
    Completed,
    /// The ACK was received (server INVITE); further ones are ignored (timer I).
    Confirmed,
    /// A 2xx to INVITE was received or sent (RFC 6026).
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
pub(crate) enum TransactionEvent {
    /// Give the response to the user agent.
    Pass,
    /// Give the response to the user agent, after an ACK was made (RFC 3261 17.1.1.3).
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
    /// True when the request goes by TCP only because it is too large for a datagram.
    pub(crate) by_size: bool,
    /// True when it was sent again, by another connection.
    pub(crate) sent_again: bool,
    /// ACK to a failure; empty before it is made.
    pub(crate) ack: Vec<u8>,
    state: State,
    interval: Duration,
    repeat: Option<Time>,
    deadline: Option<Time>,
}

impl Client {
    /// Starts a client transaction; the bytes are to be sent now.
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

    /// Returns the place of its dialog.
    pub(crate) fn hop(&self) -> Hop {
        if self.by_size { Hop::udp(self.to.address) } else { self.to.clone() }
    }

    /// Moves the transaction to another place: the Via tells the transport and this side's address there (RFC 3261
    /// 18.1.1).
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

    /// Limits the wait for the first response to `at`.
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
    pub(crate) fn response(&mut self, now: Time, code: u16) -> TransactionEvent {
        match (self.state, code) {
            (State::Trying, 100..200) if self.invite() => {
                (self.repeat, self.deadline) = (None, None);
                self.state = State::Proceeding;
                TransactionEvent::Pass
            }
            (State::Trying, 100..200) => {
                self.interval = T2;
                self.state = State::Proceeding;
                TransactionEvent::Pass
            }
            (State::Proceeding, 100..200) => TransactionEvent::Pass,
            (State::Trying | State::Proceeding, _) => {
                self.repeat = None;
                // Nothing sends them again after a final response, which is remembered for half a minute.
                self.bytes = Vec::new();
                let over = |span| if self.to.transport.is_reliable() { Duration::ZERO } else { span };
                let (state, linger, heard) = match (self.invite(), code) {
                    (true, 200..300) => (State::Accepted, T1_64, TransactionEvent::Pass),
                    (true, _) => (State::Completed, over(T1_64), TransactionEvent::PassAndAck),
                    (false, _) => (State::Completed, over(T4), TransactionEvent::Pass),
                };
                self.state = state;
                self.deadline = Some(now + linger);
                heard
            }
            (State::Accepted, 200..300) => TransactionEvent::Pass,
            (State::Completed, 300..) if self.invite() => TransactionEvent::AckAgain,
            _ => TransactionEvent::Absorb,
        }
    }

    /// Runs a timer that is due, and returns its action.
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
    /// Bytes of the last response; empty before the first.
    pub(crate) bytes: Vec<u8>,
    /// True for a refusal that is not repeated by itself.
    pub(crate) is_sparing: bool,
    /// True where a stranger began it.
    pub(crate) is_stranger: bool,
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
            is_stranger: false,
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
        // Nothing reads the request after its final response, which is kept for half a minute.
        self.request = Request::new(self.request.method.clone(), "");
        if invite && code < 300 {
            self.state = State::Accepted;
        } else {
            self.state = State::Completed;
            self.repeat = (invite && !reliable && !self.is_sparing).then_some(now + T1);
        }
    }

    /// True when the request, which came again, is to be answered with the last response again.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.state, State::Proceeding | State::Completed) && !self.bytes.is_empty()
    }

    /// Takes an ACK with this transaction's branch. True when it is for a failure, and so ends here.
    pub(crate) fn ack(&mut self, now: Time) -> bool {
        if self.state == State::Completed {
            self.state = State::Confirmed;
            self.repeat = None;
            self.deadline = Some(if self.to.transport.is_reliable() { now } else { now + T4 });
        }
        self.state == State::Confirmed
    }

    /// Runs a timer that is due, and returns its action.
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

    /// Returns the milliseconds at which the bytes are repeated, and the end of the transaction with its time.
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
