//! Settings of dialects and parameters of agents: what is accepted can be used for a session.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_transport::websocket::dialect::read_parameters;
use ringer_transport::websocket::{Dialect, Session, SessionFacts, SessionOutput};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let parameters = read_parameters(&value).unwrap_or_default();
    let Ok(dialect) = Dialect::parse("mine", &value) else { return };
    let _ = dialect.check_parameters(&parameters);
    let facts = SessionFacts::new(1, "wss://u:p@h:1/a?b", Seed(1), Time(0), 0);
    let mut session = Session::caller(dialect, SessionFacts { parameters, ..facts });
    let _ = session.upgrade(Time(0));
    session.on_open(Time(0));
    (0..60).for_each(|at| session.frame(Time(at * 20_000_000), &[7; 320]));
    let mut sent = 0;
    while let Some(output) = session.poll() {
        sent += u32::from(matches!(output, SessionOutput::Send(_)));
    }
    assert!(sent > 0);
});
