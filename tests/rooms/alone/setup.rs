//! Time from the beginning of a set-up to media that flow. The agent is there already.

use std::time::Duration;

use ringer::clock::monotonic;
use ringer::transport::news::NewsSender;
use ringer::transport::pipeline::{Patience as PipelinePatience, Pipeline};
use ringer::transport::room::{Order, Patience, RoomCall, RoomTarget};
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::websocket::dial::Dialer;
use tokio::sync::mpsc;

use crate::rooms::guests::target_as;
use crate::rooms::official::official;
use crate::rooms::phone::{PATIENCE, loopback};
use crate::rooms::pipelines::{bot, poster, target};
use crate::rooms::server::{Behaviour, RoomServer};

/// Set-ups that are measured.
const SETUPS: usize = 40;

/// Bound of the 95th percentile, in milliseconds: a wait of a second in one of ten set-ups breaks it.
const BOUND_MS: u128 = 600;

/// Prints the middle and the 95th percentile of set-ups, and holds the latter against the bound.
pub(crate) fn judge(what: &str, mut found: Vec<Duration>) {
    found.sort_unstable();
    let (middle, high) = (found[found.len() / 2].as_millis(), found[found.len() * 95 / 100].as_millis());
    println!("{what}: set-up p50 {middle} ms, p95 {high} ms (300 ms wanted)");
    assert!(high < BOUND_MS, "{what}: {found:?}");
}

/// Joins a room and leaves it, again and again. Returns the times until media could flow.
pub(crate) async fn joins(target: impl Fn() -> RoomTarget) -> Vec<Duration> {
    let mut found = Vec::new();
    for _ in 0..SETUPS {
        let ((orders, mut to_do), (tell, _news)) = (mpsc::channel(8), NewsSender::new(64));
        let patience = Patience { join: PATIENCE, agent: PATIENCE, ..Patience::default() };
        let (began, dialer) = (monotonic(), Dialer::new(&TlsSettings::default()));
        let opened = RoomCall::open(target(), loopback(), dialer, patience, &mut to_do, &tell).await;
        let mut call = opened.unwrap_or_else(|end| panic!("{end:?}"));
        found.push(monotonic().since(began));
        orders.send(Order::HangUp).await.expect("it is there");
        let media = call.media().expect("it was settled");
        let (_phone, mut pump) = crate::rooms::phone::Phone::new(media, 1, 0.0);
        call.run(&mut pump, &mut to_do, &tell).await;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_set_up_without_waits() {
    for (what, knows_joint) in [("rooms over two connections", false), ("rooms over one connection", true)] {
        let server = RoomServer::with(Behaviour { knows_joint, ..Behaviour::default() }).await;
        let _agent = official(&server, "agent-1", &[]).await;
        judge(what, joins(|| target_as("dh-42", &server.url)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_set_up_without_waits() {
    let bot = bot(&[]).await;
    let mut found = Vec::new();
    for _ in 0..SETUPS {
        let began = monotonic();
        let opened = Pipeline::open(target(&bot.base), loopback(), poster(), PipelinePatience::default()).await;
        let pipeline = opened.unwrap_or_else(|fault| panic!("{fault}"));
        found.push(monotonic().since(began));
        drop(pipeline);
    }
    judge("pipelines", found);
}
