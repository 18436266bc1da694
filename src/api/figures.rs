//! Figures of this process for a collector, in the text form of Prometheus (OpenMetrics 1.0).

use std::collections::BTreeMap;
use std::fmt;

use axum::http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use ringer_base::error::{Error, Result};
use ringer_engine::{Calls, Engine, Histogram, LineReport, Standing, lateness};
use ringer_service::{Refusals, TraceCounts};

use crate::Setup;
use crate::endpoint::{Ctx, Endpoint, In, get, with_tag};
use crate::response::{Figures, OPENMETRICS, respond};

pub(super) fn endpoints(setup: &Setup) -> Vec<Endpoint> {
    let engine = setup.engine.clone();
    let endpoint = get("/metrics", move |ctx, parts| metrics(engine.clone(), ctx, parts));
    let endpoint = if setup.public_metrics { endpoint.open() } else { endpoint.admin() };
    with_tag("System", "", vec![endpoint.about("Get metrics of this process in the format of Prometheus")]).collect()
}

async fn metrics(engine: Option<Engine>, ctx: Ctx, _: In) -> Result<Figures> {
    let jobs = ctx.service.queue().depth().await?;
    let mut registry = Registry::default();
    let (failures, refusals) = (ctx.service.store().failures(), ctx.service.placements().dial_refusals());
    let engine = engine.as_ref().map(EngineFigures::of);
    let is_draining = ctx.service.engines().is_draining();
    let bus = ctx.service.relay().map(|relay| (relay.channel().is_up(), relay.channel().count_dropped()));
    let traces = ctx.service.telemetry().counts();
    registry.register_collector(Box::new(Snapshot { engine, jobs, failures, refusals, is_draining, bus, traces }));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(Error::internal)?;
    Ok(respond(StatusCode::OK, OPENMETRICS, text).into())
}

/// All figures of one moment.
#[derive(Debug)]
struct Snapshot {
    engine: Option<EngineFigures>,
    jobs: Vec<(String, &'static str, i64)>,
    failures: BTreeMap<String, u64>,
    refusals: Refusals,
    is_draining: bool,
    /// State of the bus: true if it is connected, and its dropped messages by reason; `None`: there is no bus.
    bus: Option<(bool, Vec<(&'static str, u64)>)>,
    /// Spans that were sent and lost; `None`: no traces are sent.
    traces: Option<TraceCounts>,
}

#[derive(Debug)]
struct EngineFigures {
    live: usize,
    most: usize,
    calls: Calls,
    late: Histogram,
    effects: usize,
    recorder_lag_s: f64,
    lines: Vec<LineReport>,
    strangers_limited: u64,
}

impl EngineFigures {
    fn of(engine: &Engine) -> EngineFigures {
        EngineFigures {
            live: engine.live_calls(),
            most: engine.max_calls(),
            calls: engine.counters().calls(),
            late: lateness::histogram(&engine.lateness().0),
            effects: engine.counters().effects(),
            recorder_lag_s: engine.counters().recorder_lag_ms() as f64 / 1000.0,
            lines: engine.lines().reports(),
            strangers_limited: engine.lines().count_limited(),
        }
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut jobs = encoder.encode_descriptor("ringer_jobs", "Jobs by kind and state", None, MetricType::Gauge)?;
        for (kind, state, count) in &self.jobs {
            let labels = [("kind", kind.as_str()), ("state", state)];
            ConstGauge::new(*count).encode(jobs.encode_family(&labels)?)?;
        }
        let mut page = Page(encoder);
        let failures = self.failures.iter().map(|(code, count)| (code.as_str(), *count));
        let help = "Results that are final with an error: calls, text conversations, evaluations";
        page.counters("ringer_results_failed", help, "error_code", failures)?;
        page.refusals(&self.refusals)?;
        if let Some((is_up, dropped)) = &self.bus {
            page.gauge("ringer_bus_up", "1 while the bus is connected", None, f64::from(u8::from(*is_up)))?;
            let help = "Messages of the bus that were not believed or not understood";
            page.counters("ringer_bus_dropped", help, "reason", dropped.iter().copied())?;
        }
        if let Some(traces) = &self.traces {
            page.traces(traces)?;
        }
        let Some(engine) = &self.engine else { return Ok(()) };
        page.trunks(&engine.lines)?;
        let help = "SIP messages of strangers that were not looked at because there were too many";
        page.counter("ringer_sip_strangers_limited", help, engine.strangers_limited)?;
        let calls = &engine.calls;
        page.gauge("ringer_calls_live", "Calls that are being made or are up", None, engine.live as f64)?;
        page.gauge("ringer_calls_most", "Calls that fit at once", None, engine.most as f64)?;
        let draining = f64::from(u8::from(self.is_draining));
        page.gauge("ringer_engine_draining", "1: the engine begins no conversation any more", None, draining)?;
        page.counter("ringer_calls_placed", "Calls that were dialled, whatever came of it", calls.placed)?;
        page.counter("ringer_calls_answered", "Calls that came in and were answered", calls.answered)?;
        page.counter("ringer_calls_connected", "Calls that came up", calls.connected)?;
        let ended = calls.ended.iter().map(|(reason, count)| (*reason, *count));
        page.counters("ringer_calls_ended", "Calls that are over", "reason", ended)?;
        page.histogram("ringer_call_setup", "From dialling to the answer, of calls that came up", &calls.set_up)?;
        page.histogram("ringer_frame_lateness", "How much later than planned frames were sent", &engine.late)?;
        page.histogram("ringer_jitter", "Interarrival jitter (RFC 3550) of calls at their ends", &calls.jitter)?;
        let fates = ["received", "lost", "late"].into_iter().zip(calls.packets);
        page.counters("ringer_rtp_packets", "RTP packets of calls that are over", "fate", fates)?;
        page.counter(
            "ringer_recording_frames_dropped",
            "Frames that the disk was too slow for",
            calls.recording_dropped,
        )?;
        let lag = "Audio that waited for the disk at the recorder's last look";
        page.gauge("ringer_recorder_lag", lag, Some(&Unit::Seconds), engine.recorder_lag_s)?;
        page.gauge("ringer_effects_in_flight", "Thoughts, syntheses and recognitions", None, engine.effects as f64)
    }
}

/// Writes one figure after the other.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: f64) -> fmt::Result {
        ConstGauge::new(value).encode(self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        ConstCounter::new(value).encode(self.0.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (word, value) in values {
            ConstCounter::new(value).encode(family.encode_family(&[(label, word)])?)?;
        }
        Ok(())
    }

    fn refusals(&mut self, refusals: &Refusals) -> fmt::Result {
        let help = "Telephone numbers that a limit kept from being dialled";
        let mut family = self.0.encode_descriptor("ringer_dial_refused", help, None, MetricType::Counter)?;
        for ((code, trunk), count) in refusals {
            let labels = [("code", code.as_str()), ("trunk", trunk.as_str())];
            ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn traces(&mut self, counts: &TraceCounts) -> fmt::Result {
        let up = "1 while the collector of traces takes them";
        self.gauge("ringer_traces_up", up, None, f64::from(u8::from(counts.is_up)))?;
        let fates = [("sent", counts.sent), ("dropped", counts.dropped)];
        self.counters("ringer_traces_spans", "Spans by what became of them", "fate", fates.into_iter())?;
        let failed = "Requests that the collector of traces did not take";
        self.counter("ringer_traces_requests_failed", failed, counts.failed)?;
        self.gauge("ringer_traces_waiting", "Spans that wait for the collector", None, counts.waiting as f64)
    }

    /// Writes 1 for what is up, 0 for what is down, and nothing for what is not known.
    fn trunks(&mut self, lines: &[LineReport]) -> fmt::Result {
        let help = "Trunks by their registration and by their answers to OPTIONS: 1 is up, 0 is down";
        let mut family = self.0.encode_descriptor("ringer_trunk_up", help, None, MetricType::Gauge)?;
        for LineReport { name, registration, keepalive, .. } in lines {
            for (by, line) in [("registration", registration), ("keepalive", keepalive)] {
                let up = match line.as_ref().map(|line| line.standing) {
                    Some(Standing::Up) => 1,
                    Some(Standing::Down) => 0,
                    Some(Standing::Unknown) | None => continue,
                };
                let labels = [("by", by), ("trunk", name.as_str())];
                ConstGauge::new(up).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn histogram(&mut self, name: &str, help: &str, values: &Histogram) -> fmt::Result {
        let bounds = values.bounds.iter().copied().chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(values.counts.iter().copied()).collect();
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(values.sum, values.counts.iter().sum(), &buckets, None)
    }
}
