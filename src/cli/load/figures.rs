//! Figures of a load test, and how they are printed.

use std::time::Duration;

use serde::Serialize;

use super::{News, far::Counts};
use crate::cli::out::Out;
use crate::cli::own_cpu;
use crate::clock::monotonic;
use crate::engine::lateness::quantile_ms;
use crate::engine::{CallControl, CallReport, Engine};
use ringer_media::time::Time;

/// Lateness beyond which the machine, not the engine, was measured.
const TRUSTED_P99_MS: f64 = 5.0;
/// Share of frames that may be skipped.
const TRUSTED_SKIPPED: f64 = 0.001;

/// Figures of a whole load test.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Number of calls asked for.
    pub calls: u32,
    /// Calls that were connected.
    pub connected: u32,
    /// Calls that were not, or that ended by themselves.
    pub failed: u32,
    /// Reason why the first of them failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Length of the measured window, in seconds.
    pub seconds: f64,
    /// CPU time of this process in the window, in milliseconds for each call and second; `None` when calls ended in it.
    pub cpu_ms_per_call_second: Option<f64>,
    /// Memory that a call holds while it is up, all of this process that came with the calls, in KiB; `None` where the
    /// allocator does not tell, and when calls ended in the window.
    pub memory_kib_per_call: Option<f64>,
    /// True if times can be relied on: sending was on time.
    pub trusted: bool,
    /// Lateness of sending in the window; `None` when it is not trusted.
    pub lateness_ms: Option<Lateness>,
    /// Time from the order to the connection; `None` when it is not trusted.
    pub setup_ms: Option<Setup>,
    /// Frames sent by all calls.
    pub sent: u64,
    /// Number of RTP packets received.
    pub received: u64,
    /// RTP packets that never came.
    pub lost: u64,
    /// RTP packets that came too late to be heard.
    pub late: u64,
    /// Frames that were not sent because their tick was 20 ms late.
    pub skipped_frames: u64,
    /// Frames that did not fit into the rings of the recorder.
    pub recording_dropped: u64,
    /// Counts of the far side; `None` when it is another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_side: Option<Counts>,
    #[serde(skip)]
    setups: Vec<f64>,
    #[serde(skip)]
    late_counts: Vec<u64>,
    #[serde(skip)]
    late_max_ms: f64,
}

/// Lateness of sending, in milliseconds.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct Lateness {
    /// Median lateness in milliseconds.
    pub p50: f64,
    /// 99th percentile in milliseconds.
    pub p99: f64,
    /// 99.9th percentile in milliseconds.
    pub p999: f64,
    /// Largest lateness in milliseconds.
    pub max: f64,
}

/// Set-up times, in milliseconds.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct Setup {
    /// Median set-up time in milliseconds.
    pub p50: f64,
    /// 99th percentile in milliseconds.
    pub p99: f64,
}

/// One end of the measured window.
pub(crate) struct Window {
    at: Time,
    cpu: Duration,
    late_counts: Vec<u64>,
    late_max_ms: f64,
    live: usize,
    /// Bytes that are allocated, without those that take addresses alone.
    allocated: Option<usize>,
}

impl Window {
    /// Returns the state of the engine and of this process.
    pub(crate) fn now(engine: &Engine) -> Window {
        let (late_counts, late_max_ms) = engine.lateness();
        let live = engine.live_calls();
        let allocated = allocated_bytes().map(|all| all.saturating_sub(engine.unused_recording_bytes()));
        Window { at: monotonic(), cpu: own_cpu(), late_counts, late_max_ms, live, allocated }
    }
}

impl Figures {
    /// Returns empty figures of `calls` calls.
    pub(crate) fn new(calls: u32) -> Figures {
        Figures { calls, ..Figures::default() }
    }

    /// Counts a call that was not placed.
    pub(crate) fn add_refused(&mut self, why: &str) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(|| why.to_owned());
    }

    /// Counts the news of a call. The control of one that was placed goes to `controls`.
    pub(crate) fn take(&mut self, news: News, controls: &mut Vec<CallControl>) {
        match news {
            News::Placed(control) => controls.push(control),
            News::Refused(why) => self.add_refused(&why),
            News::Connected { after } => {
                self.connected += 1;
                self.setups.push(after.as_secs_f64() * 1000.0);
            }
            News::Ended(report) => self.add_ended(&report),
        }
    }

    fn add_ended(&mut self, report: &CallReport) {
        let ending = &report.ending;
        if !ending.connected || ending.reason != ringer_media::call::EndReason::ApiHangup {
            let text = ending.remote.as_ref().map(|remote| remote.text.clone()).filter(|text| !text.is_empty());
            self.add_refused(&text.unwrap_or_else(|| ending.reason.as_str().to_owned()));
        }
        let quality = &ending.quality;
        self.sent += quality.sent_frames;
        self.received += quality.received_packets;
        self.lost += quality.lost_packets;
        self.late += quality.late_packets;
        self.skipped_frames += quality.late_frames;
        self.recording_dropped += quality.recording_dropped;
    }

    /// Computes the memory per call at the end of the window, less what was allocated at `idle`.
    pub(crate) fn memory(&mut self, idle: &Window, before: &Window, after: &Window) {
        let held = after.allocated.zip(idle.allocated).map(|(held, idle)| held.saturating_sub(idle));
        let all_stayed = before.live == after.live && after.live > 0;
        self.memory_kib_per_call = held.filter(|_| all_stayed).map(|held| held as f64 / 1024.0 / after.live as f64);
    }

    /// Computes CPU time and lateness over the measured window.
    pub(crate) fn window(&mut self, before: &Window, after: &Window) {
        self.seconds = after.at.since(before.at).as_secs_f64();
        let call_seconds = before.live as f64 * self.seconds;
        let all_stayed = before.live == after.live && call_seconds > 0.0;
        let cpu_ms = (after.cpu - before.cpu).as_secs_f64() * 1000.0;
        self.cpu_ms_per_call_second = all_stayed.then(|| cpu_ms / call_seconds);
        self.late_counts =
            after.late_counts.iter().zip(&before.late_counts).map(|(after, before)| after - before).collect();
        self.late_max_ms = after.late_max_ms.min(quantile_ms(&self.late_counts, 1.0));
        if self.late_counts.last().is_some_and(|beyond| *beyond > 0) {
            self.late_max_ms = after.late_max_ms;
        }
    }

    /// Completes the figures once all calls are over: times are given when they can be believed.
    pub(crate) fn finish(&mut self) {
        let late = |share| quantile_ms(&self.late_counts, share);
        let lateness = Lateness { p50: late(0.5), p99: late(0.99), p999: late(0.999), max: self.late_max_ms };
        let skipped = self.skipped_frames as f64 / (self.sent + self.skipped_frames).max(1) as f64;
        self.trusted = lateness.p99 <= TRUSTED_P99_MS && skipped <= TRUSTED_SKIPPED;
        self.setups.sort_by(f64::total_cmp);
        if self.trusted {
            self.lateness_ms = Some(lateness);
            self.setup_ms = Some(Setup { p50: quantile(&self.setups, 0.5), p99: quantile(&self.setups, 0.99) });
        }
    }

    /// Returns the lateness above these bounds in milliseconds, or why it is not known. `None`: all is within them.
    pub(crate) fn too_late(&self, p99_ms: Option<f64>, p999_ms: Option<f64>) -> Option<String> {
        p99_ms.or(p999_ms)?;
        let Some(late) = self.lateness_ms else { return Some("sending was not on time".to_owned()) };
        let over = |name, found: f64, most: Option<f64>| {
            most.filter(|most| found > *most)
                .map(|most| format!("{name} of sending is {found:.2} ms late, more than {most}"))
        };
        over("p99", late.p99, p99_ms).or_else(|| over("p99.9", late.p999, p999_ms))
    }

    /// Prints it, as text or as one JSON object.
    pub(crate) fn print(&self, out: &Out, json: bool) {
        if json {
            return out.line(serde_json::json!(self));
        }
        out.line(format_args!(
            "calls      {} placed, {} connected, {} failed",
            self.calls, self.connected, self.failed
        ));
        if let Some(why) = &self.first_failure {
            out.line(format_args!("           the first failure: {why}"));
        }
        match self.cpu_ms_per_call_second {
            Some(cpu_ms) => {
                out.line(format_args!("CPU        {cpu_ms:.3} ms a call and second, over {:.1} s", self.seconds))
            }
            None => out.line("CPU        not given: calls ended while it was measured"),
        }
        if let Some(kib) = self.memory_kib_per_call {
            out.line(format_args!("memory     {kib:.0} KiB a call"));
        }
        match (self.lateness_ms, self.setup_ms) {
            (Some(late), Some(setup)) => {
                out.line(format_args!(
                    "sending    late by {:.2} ms p50, {:.2} p99, {:.2} p99.9, {:.2} max",
                    late.p50, late.p99, late.p999, late.max
                ));
                out.line(format_args!("set-up     {:.1} ms p50, {:.1} p99", setup.p50, setup.p99));
            }
            _ => out.line("sending    not on time on this machine now: figures of time are not trusted and not given"),
        }
        out.line(format_args!(
            "packets    {} sent, {} received, {} lost, {} too late; {} frames skipped",
            self.sent, self.received, self.lost, self.late, self.skipped_frames
        ));
        if let Some(far) = self.far_side {
            out.line(format_args!("far side   {} sent, {} received", far.sent, far.received));
            if let Some(ms) = far.first_audio_ms {
                out.line(format_args!("first audio at most {ms:.1} ms after a session was ready"));
            }
        }
        out.line(format_args!("recording  {} frames dropped", self.recording_dropped));
    }
}

/// Returns the `share` quantile (0..1) of sorted values; 0 when there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

/// Returns the bytes that this process has asked its allocator for and not given back.
#[cfg(target_env = "gnu")]
fn allocated_bytes() -> Option<usize> {
    // SAFETY: reads counters, and takes the allocator's own locks.
    let info = unsafe { libc::mallinfo2() };
    Some(info.uordblks + info.hblkhd)
}

#[cfg(not(target_env = "gnu"))]
fn allocated_bytes() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(late_counts: Vec<u64>, sent: u64, skipped_frames: u64) -> Figures {
        let setups = vec![9.0, 1.0, 2.0];
        let mut figures = Figures { late_counts, sent, skipped_frames, setups, late_max_ms: 0.5, ..Figures::default() };
        figures.finish();
        figures
    }

    #[test]
    fn times_are_given_only_when_sending_was_on_time() {
        let mut slow = vec![0; 1001];
        (slow[2], slow[400]) = (97, 3);
        for (counts, sent, skipped, trusted) in [
            (vec![0, 100, 0], 1000, 0, true),
            (vec![0, 100, 0], 1000, 1, true),
            (vec![0, 100, 0], 1000, 2, false),
            (slow, 1000, 0, false),
        ] {
            let figures = figures_of(counts, sent, skipped);
            assert_eq!((figures.trusted, figures.lateness_ms.is_some()), (trusted, trusted));
            assert_eq!(figures.setup_ms.map(|setup| (setup.p50, setup.p99)), trusted.then_some((2.0, 9.0)));
        }
    }

    #[test]
    fn what_is_too_late_is_named() {
        let figures = figures_of(vec![0, 980, 15, 0, 5], 1000, 0);
        let late = figures.lateness_ms.expect("it was on time");
        assert!(late.p99 < late.p999, "{late:?}");
        let more = |ms: f64| Some(ms + 0.001);
        let less = |ms: f64| Some(ms - 0.001);
        assert_eq!((figures.too_late(None, None), figures.too_late(more(late.p99), more(late.p999))), (None, None));
        assert!(figures.too_late(less(late.p99), None).is_some_and(|why| why.starts_with("p99 ")));
        assert!(figures.too_late(more(late.p99), less(late.p999)).is_some_and(|why| why.starts_with("p99.9 ")));
        let unknown = figures_of(vec![0, 100, 0], 1000, 500);
        assert_eq!((unknown.too_late(None, None), unknown.too_late(Some(9.0), None).is_some()), (None, true));
    }

    #[test]
    fn the_window_is_the_difference_of_its_ends() {
        let end = |at, cpu, live, late_counts: &[u64]| Window {
            at: Time::from_millis(at),
            cpu: Duration::from_millis(cpu),
            late_counts: late_counts.to_vec(),
            late_max_ms: 3.0,
            live,
            allocated: Some(live * 2048 + 100),
        };
        let mut figures = Figures::default();
        figures.window(&end(1000, 500, 10, &[5, 1, 0]), &end(3000, 520, 10, &[9, 2, 0]));
        assert!(figures.cpu_ms_per_call_second.is_some_and(|cpu_ms| (cpu_ms - 1.0).abs() < 1e-9));
        assert_eq!((&figures.late_counts, figures.late_max_ms), (&vec![4, 1, 0], 0.04));
        figures.window(&end(1000, 500, 10, &[5]), &end(3000, 520, 9, &[9]));
        assert_eq!(figures.cpu_ms_per_call_second, None);
        figures.memory(&end(0, 0, 0, &[0]), &end(1000, 500, 10, &[5]), &end(3000, 520, 10, &[9]));
        assert_eq!(figures.memory_kib_per_call, Some(2.0));
        figures.memory(&end(0, 0, 0, &[0]), &end(1000, 500, 10, &[5]), &end(3000, 520, 9, &[9]));
        assert_eq!(figures.memory_kib_per_call, None);
    }
}
