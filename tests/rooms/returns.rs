//! Agents that come back, come late, have several tracks, or are not the only ones in their room.

use std::time::Duration;

use ringer::transport::room::RoomNews;
use ringer::transport::room::messages::DisconnectReason;
use ringer::transport::room::signal::RoomEvent;
use ringer_media::call::EndReason;

use super::conversations::placement;
use super::guests::Guest;
use super::official::official;
use super::phone::share;
use super::server::{Behaviour, RoomServer};
use crate::calls::stage::{Stage, channels, names};

fn is_event(news: &RoomNews, wanted: impl Fn(&RoomEvent) -> bool) -> bool {
    matches!(news, RoomNews::Event(_, event) if wanted(event))
}

/// An agent that crashed joins again: the server tells of no leave, only of the same identity under another name.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_joins_again_is_heard_again() {
    let server = RoomServer::with(Behaviour { knows_joint: true, ..Behaviour::default() }).await;
    let first = official(&server, "agent-1", &[]).await;
    let mut guest = Guest::join(&server).await;
    guest.hears().await;
    let _second = guest.during(official(&server, "agent-1", &[])).await;
    let is_back = |event: &RoomEvent| matches!(event, RoomEvent::AgentRejoined(who, Some(_)) if who == "agent-1");
    guest.until(|news| is_event(news, is_back)).await;
    guest.hears().await;
    drop(first);
    guest.hears().await;
}

/// A client that connects anew leaves first: that is no end.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_connects_anew_has_not_left() {
    let server = RoomServer::start().await;
    let _agent = official(&server, "agent-1", &[]).await;
    let mut guest = Guest::join(&server).await;
    guest.hears().await;
    server.reconnect("agent-1");
    let back = |event: &RoomEvent| matches!(event, RoomEvent::AgentRejoined(..));
    let news = guest.until(|news| is_event(news, back)).await;
    assert!(news.iter().any(|news| is_event(news, |event| *event == RoomEvent::AgentAway)), "{news:?}");
    guest.hears().await;
}

/// A track without a source is there first, and the voice behind it.
#[tokio::test(flavor = "multi_thread")]
async fn the_voice_is_heard_and_not_the_track_that_was_first() {
    let server = RoomServer::start().await;
    let agent = official(&server, "agent-1", &["--background", "300", "--late"]).await;
    let mut guest = Guest::join(&server).await;
    guest.during(agent.post("/publish")).await;
    guest.until(|news| matches!(news, RoomNews::Media(_))).await;
    guest.hears().await;
}

/// A person is there first, with an open microphone; the agent comes behind.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_takes_the_place_of_a_person_who_has_not_spoken() {
    let server = RoomServer::start().await;
    let _person = official(&server, "person", &["--standard", "--tone", "300"]).await;
    let mut guest = Guest::join(&server).await;
    assert_eq!(guest.joined.agent.as_deref(), Some("person"));
    let _agent = guest.during(official(&server, "agent-1", &[])).await;
    let changed = RoomEvent::AgentChanged("person".into(), "agent-1".into());
    guest.until(|news| is_event(news, |event| *event == changed)).await;
    guest.hears().await;
}

/// An agent whose connection was lost ends the call at that moment, not by its hang-up; before its time is over it may
/// be back.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_agent_is_a_lost_connection_from_its_last_moment_on() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let agent = official(&server, "agent-1", &[]).await;
    let mut placement = placement(&stage, &server, 60_000);
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    placement.folder = Some(folder.path().to_owned());
    let lost = async {
        agent.sees(|seen| seen["frames"].as_u64() > Some(100)).await;
        server.lose("agent-1", DisconnectReason::ConnectionTimeout).await;
    };
    let (report, ()) = tokio::join!(stage.call(placement), lost);
    let report = report.expect("a place is free");
    let events = names(&report);
    assert_eq!(report.ending.reason, EndReason::ConnectionLost, "{events:?}");
    let remote = report.ending.remote.as_ref().expect("it is told");
    assert_eq!(remote.pipeline_code(), Some("room_lost"), "{}", remote.text);
    assert_eq!(events.last().copied(), Some("call.ended"), "{events:?}");
    let end = report.timeline.last().map(|entry| entry.sample).expect("it has events");
    assert_eq!(end, report.ending.samples, "it ended when the agent was gone");
    let lasted = Duration::from_micros(end as u64 * 1_000_000 / 16_000);
    let whole = Duration::from_millis((report.ended_at_ms - report.connected_at_ms.expect("it was up")) as u64);
    assert!(whole - lasted >= Duration::from_secs(9), "{lasted:?} of {whole:?}");
    let [_, heard] = channels(report.recording.as_ref().expect("it was recorded"));
    assert_eq!(heard.len() as i64, end, "the recording ends there");
    assert!(heard.len() > 16_000 && share(&heard[heard.len() - 8000..], 880.0) > 0.8, "up to there it is heard");
    stage.engine.stop().await;
}
