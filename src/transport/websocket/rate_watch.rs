//! Recognition of audio whose sampling rate is not the one of its protocol: by the pace of its messages, or by a WAV
//! header in them.
//!
//! A sender that keeps real time by another rate sends equal messages at equal intervals, and their duration by the
//! protocol's rate differs from the interval by the ratio of the two rates. Faster senders are allowed, and pauses are
//! normal. So nothing is concluded from bursts, from changing sizes, from uneven intervals, or while this side itself
//! is late.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::time::Time;

use super::rate_doubt::{Bits, RateDoubt};
use super::voice::{Encoding, Wire};

/// Sampling rates that senders have in practice, in Hz.
const USUAL_HZ: [u32; 6] = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

/// Time over which messages have to be steady.
const WINDOW: Duration = Duration::from_millis(1800);

/// Least number of messages within the window.
const MIN_MESSAGES: usize = 10;

/// Most messages that are remembered. Shorter ones than 2 ms tell nothing.
const MAX_MESSAGES: usize = 900;

/// Largest distance of an arrival from the line through all of them: messages in pairs (RFC 1122 4.2.3.4), and jitter.
const STEADY: Duration = Duration::from_millis(30);

/// Largest difference between the rate by the pace and a usual rate, as a share of the latter.
const NEAR: f64 = 0.025;

/// Factors of the declared pace that are no other rate: a sender whose timer is slow, or one that catches up.
const REAL_TIME: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// Distance of two ticks from which on this side is late.
const LATE: Duration = Duration::from_millis(100);

/// Bytes of a WAV header up to the end of its rate.
const WAV_RATE_END: usize = 28;

/// Arrivals of the other side's messages of audio.
#[derive(Debug, Default)]
pub(super) struct RateWatch {
    /// Form and bytes of the messages.
    form: Option<(Wire, usize)>,
    arrivals: VecDeque<Time>,
    ticked: Option<Time>,
    is_told: bool,
}

impl RateWatch {
    /// Takes the passing of time. A tick that comes late says that arrivals may be late, too.
    pub(super) fn tick(&mut self, now: Time) {
        if self.ticked.replace(now).is_some_and(|last| now.since(last) > LATE) {
            self.arrivals.clear();
        }
    }

    /// Takes a message of so many bytes of audio; returns the doubt that it completes, once.
    pub(super) fn on_audio(&mut self, now: Time, wire: Wire, bytes: usize) -> Option<RateDoubt> {
        if self.is_told || bytes == 0 {
            return None;
        }
        if self.form.replace((wire, bytes)) != Some((wire, bytes)) || self.arrivals.len() >= MAX_MESSAGES {
            self.arrivals.clear();
        }
        self.arrivals.push_back(now);
        while self.arrivals.get(1).is_some_and(|second| now.since(*second) >= WINDOW) {
            self.arrivals.pop_front();
        }
        let is_whole = self.arrivals.front().is_some_and(|first| now.since(*first) >= WINDOW);
        if !is_whole || self.arrivals.len() < MIN_MESSAGES {
            return None;
        }
        let interval_s = steady_interval_s(&self.arrivals)?;
        let message_s = bytes as f64 / wire.encoding.bytes() as f64 / f64::from(wire.rate_hz);
        let doubt = doubt_of(wire, message_s / interval_s);
        self.is_told = doubt.is_some();
        doubt
    }

    /// Takes the beginning of audio; returns the doubt where it is a WAV header of another rate than the protocol's,
    /// once.
    pub(super) fn on_header(&mut self, wire: Wire, bytes: &[u8]) -> Option<RateDoubt> {
        let is_format = bytes.starts_with(b"RIFF") && bytes.get(8..16) == Some(b"WAVEfmt ");
        let rate = bytes.get(WAV_RATE_END - 4..WAV_RATE_END).filter(|_| is_format && !self.is_told)?;
        let rate_hz = u32::from_le_bytes(rate.try_into().ok()?);
        if rate_hz == wire.rate_hz || !USUAL_HZ.contains(&rate_hz) {
            return None;
        }
        self.is_told = true;
        Some(RateDoubt { factor: None, expected_hz: wire.rate_hz, rate_hz, bits: None })
    }
}

/// Returns the interval of arrivals in seconds by the least squares; `None` where one of them lies far from the line.
fn steady_interval_s(arrivals: &VecDeque<Time>) -> Option<f64> {
    let first = *arrivals.front()?;
    let times = || arrivals.iter().map(|at| at.since(first).as_secs_f64()).enumerate();
    let count = arrivals.len() as f64;
    let (mean_n, mean_t) = ((count - 1.0) / 2.0, times().map(|(_, t)| t).sum::<f64>() / count);
    let (mut both, mut square) = (0.0, 0.0);
    for (n, t) in times() {
        let off = n as f64 - mean_n;
        both += off * (t - mean_t);
        square += off * off;
    }
    let interval_s = both / square;
    let is_near = |(n, t): (usize, f64)| (t - mean_t - interval_s * (n as f64 - mean_n)).abs() <= STEADY.as_secs_f64();
    (interval_s > 0.0 && times().all(is_near)).then_some(interval_s)
}

/// Returns the doubt that a steady factor of the declared pace raises.
fn doubt_of(wire: Wire, factor: f64) -> Option<RateDoubt> {
    if REAL_TIME.contains(&factor) {
        return None;
    }
    let usual = |rate_hz: f64| {
        let is_near = |usual: &&u32| (rate_hz / f64::from(**usual) - 1.0).abs() <= NEAR;
        USUAL_HZ.iter().find(is_near).copied()
    };
    let is_narrow = matches!(wire.encoding, Encoding::Pcmu | Encoding::Pcma);
    let (bits, share) = if is_narrow { (16, 0.5) } else { (8, 2.0) };
    let pace_hz = factor * f64::from(wire.rate_hz);
    let doubt = |rate_hz, bits| RateDoubt { factor: Some(factor), expected_hz: wire.rate_hz, rate_hz, bits };
    match (usual(pace_hz), usual(pace_hz * share)) {
        // Samples of 16 bits where those of G.711 are due are no rare mistake; the opposite alone explains few cases.
        (Some(rate_hz), Some(_)) if is_narrow => Some(doubt(rate_hz, Some(Bits { bits, is_needed: false }))),
        (Some(rate_hz), _) => Some(doubt(rate_hz, None)),
        (None, Some(rate_hz)) => Some(doubt(rate_hz, Some(Bits { bits, is_needed: true }))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L16: Wire = Wire { encoding: Encoding::L16Le, rate_hz: 16_000 };
    const MU_LAW: Wire = Wire { encoding: Encoding::Pcmu, rate_hz: 8000 };

    /// A sender whose messages have these bytes; each is told with its time in microseconds.
    struct Sender {
        watch: RateWatch,
        wire: Wire,
        /// Time of the first doubt, in microseconds, and its text.
        doubt_at: Option<(u64, String)>,
    }

    impl Sender {
        fn new(wire: Wire) -> Sender {
            Sender { watch: RateWatch::default(), wire, doubt_at: None }
        }

        fn send(&mut self, at_us: u64, bytes: usize) {
            if let Some(doubt) = self.watch.on_audio(Time(at_us * 1000), self.wire, bytes) {
                assert_eq!(self.doubt_at, None, "it is told once");
                self.doubt_at = Some((at_us, doubt.text()));
            }
        }

        /// Sends messages at these times.
        fn send_all(wire: Wire, bytes: usize, times_us: impl IntoIterator<Item = u64>) -> Option<(u64, String)> {
            let mut sender = Sender::new(wire);
            times_us.into_iter().for_each(|at_us| sender.send(at_us, bytes));
            sender.doubt_at
        }
    }

    /// Returns a draw from 0 to `most`, the same for the same number.
    fn draw(n: u64, most: u64) -> u64 {
        (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % (most + 1)
    }

    #[test]
    fn a_steady_pace_of_another_rate_is_told_within_two_seconds() {
        for (wire, bytes, interval_ms, expect) in [
            (L16, 320, 20, "the agent sends 0.5 times real time: is its rate 8000?"),
            (L16, 960, 20, "the agent sends 1.5 times real time: is its rate 24000?"),
            (L16, 1920, 20, "the agent sends 3 times real time: is its rate 48000?"),
            (L16, 1600, 100, "the agent sends 0.5 times real time: is its rate 8000?"),
            (L16, 882, 20, "the agent sends 1.38 times real time: is its rate 22050?"),
            (L16, 4800, 100, "the agent sends 1.5 times real time: is its rate 24000?"),
            (L16, 160, 20, "the agent sends 0.25 times real time: are its samples of 8 bits, at a rate of 8000?"),
            (MU_LAW, 480, 20, "the agent sends 3 times real time: is its rate 24000?"),
            (MU_LAW, 320, 20, "the agent sends 2 times real time: is its rate 16000, or are its samples of 16 bits?"),
            (Wire { rate_hz: 24_000, ..L16 }, 320, 20, "the agent sends 0.33 times real time: is its rate 8000?"),
            (Wire { rate_hz: 24_000, ..L16 }, 640, 20, "the agent sends 0.67 times real time: is its rate 16000?"),
            (Wire { rate_hz: 8000, ..L16 }, 640, 20, "the agent sends 2 times real time: is its rate 16000?"),
        ] {
            let (at_us, text) = Sender::send_all(wire, bytes, (0..200).map(|n| n * interval_ms * 1000))
                .unwrap_or_else(|| panic!("{bytes} bytes each {interval_ms} ms"));
            assert_eq!(text, expect);
            assert!(at_us <= 2_000_000, "{expect}: {at_us}");
            // The same with jitter, and in pairs.
            let jitter = (0..200).map(|n| n * interval_ms * 1000 + draw(n, 18_000));
            assert_eq!(Sender::send_all(wire, bytes, jitter).map(|(_, text)| text).as_deref(), Some(expect));
            if interval_ms == 20 {
                let pairs = (0..200).map(|n| (n + n % 2) * 20_000);
                assert_eq!(Sender::send_all(wire, bytes, pairs).map(|(_, text)| text).as_deref(), Some(expect));
            }
        }
    }

    #[test]
    fn honest_senders_raise_no_doubt() {
        let steady = |interval_us: u64| (0..1500).map(move |n| n * interval_us);
        let cases: Vec<(&str, Wire, usize, Vec<u64>)> = vec![
            ("real time", L16, 640, steady(20_000).collect()),
            ("1 % slow", L16, 640, steady(20_200).collect()),
            ("1 % fast", L16, 640, steady(19_800).collect()),
            ("a sleep of 20 ms beside the work", L16, 640, steady(22_000).collect()),
            ("a timer of 15.6 ms", L16, 640, steady(31_200).collect()),
            ("jitter", L16, 640, (0..1500).map(|n| n * 20_000 + draw(n, 35_000)).collect()),
            ("200 ms ahead", L16, 640, (0..1500).map(|n: u64| n.saturating_sub(10) * 20_000).collect()),
            ("a sentence at once", L16, 640, vec![0; 400]),
            // Sentences of 4 s in bursts that follow each other.
            ("sentences", L16, 6400, (0..800).map(|n| n / 40 * 5_000_000 + n % 40 * 3000).collect()),
            // 2 s of speech at real time, 1 s of nothing.
            ("pauses", L16, 640, (0..1500).map(|n| n * 20_000 + n / 100 * 1_000_000).collect()),
            // Half of the time nothing comes, each time for 200 ms.
            ("short pauses", L16, 640, (0..1500).map(|n| n * 20_000 + n / 10 * 200_000).collect()),
            // A host that makes 200 ms of speech in 400 ms, and sends it in messages of 20 ms.
            ("underruns", L16, 640, (0..1500).map(|n| (n / 10 + 1) * 400_000 + n % 10 * 200).collect()),
            // A host that makes speech twice as fast as it is heard, unevenly.
            ("a stream of speech", L16, 3200, (0..300).map(|n| n * 66_667 + draw(n, 90_000)).collect()),
            ("no usual rate", L16, 640, steady(12_000).collect()),
            ("messages of a byte", MU_LAW, 1, steady(62).collect()),
        ];
        for (name, wire, bytes, mut times_us) in cases {
            times_us.sort_unstable();
            assert_eq!(Sender::send_all(wire, bytes, times_us), None, "{name}");
        }
        // Messages of changing sizes: deltas of a service.
        let mut sender = Sender::new(L16);
        (0..300).for_each(|n| sender.send(n * 20_000, 960 + 2 * (n as usize % 3)));
        assert_eq!(sender.doubt_at, None);
    }

    #[test]
    fn a_doubt_waits_until_the_pace_is_steady() {
        let mut sender = Sender::new(L16);
        // 200 ms ahead first.
        (0..10).for_each(|_| sender.send(0, 960));
        (1..200).for_each(|n| sender.send(n * 20_000, 960));
        let (at_us, text) = sender.doubt_at.expect("it is steady in the end");
        assert_eq!(text, "the agent sends 1.5 times real time: is its rate 24000?");
        assert!(at_us <= 2_000_000, "{at_us}");
    }

    #[test]
    fn nothing_is_concluded_while_this_side_is_late() {
        let mut sender = Sender::new(L16);
        for n in 0..300 {
            // Each second a tick comes 120 ms late.
            let late = n % 50 < 6;
            if !late {
                sender.watch.tick(Time(n * 20_000_000));
            }
            sender.send(n * 20_000, 320);
        }
        assert_eq!(sender.doubt_at, None);
    }

    #[test]
    fn a_header_states_the_rate() {
        let header = |rate_hz: u32| {
            let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
            bytes.extend(rate_hz.to_le_bytes());
            bytes
        };
        let text = |rate_hz| RateWatch::default().on_header(L16, &header(rate_hz)).map(|doubt| doubt.text());
        let expect = "the agent's audio has a WAV header of 24000 Hz, and is played at 16000 Hz";
        assert_eq!(text(24_000).as_deref(), Some(expect));
        assert_eq!(text(16_000), None);
        assert_eq!(text(7), None);
        for len in 0..28 {
            assert_eq!(RateWatch::default().on_header(L16, &header(24_000)[..len]), None);
        }
        assert_eq!(RateWatch::default().on_header(L16, &[0; 640]), None);
    }
}
