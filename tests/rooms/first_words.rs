//! Sound that an agent sends from the moment at which its track is subscribed: nothing of it is lost.

use std::f64::consts::TAU;

use ringer::transport::news::NewsSender;
use ringer::transport::room::{Patience, RoomCall};
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::websocket::dial::Dialer;
use tokio::sync::mpsc;

use super::conversations::placement;
use super::guests::target_as;
use super::phone::{PATIENCE, Phone, loopback};
use super::server::{Behaviour, RoomServer, lock};
use crate::calls::stage::{Stage, channels, names};

/// Most milliseconds of the agent's first sound that may be missing.
const MISSING_MS: f64 = 40.0;

/// Loudness of a sample that is a tone.
const LOUD: i16 = 1500;

/// Returns the sample at `at` of a tone that rises by 100 Hz in each 100 ms for 3 s, from 300 Hz on, again and again.
fn rising(at: usize) -> i16 {
    let seconds = (at % 48_000) as f64 / 16_000.0;
    (6000.0 * (TAU * (300.0 * seconds + 500.0 * seconds * seconds)).sin()) as i16
}

/// Returns the time within the rising tone of the first 40 ms of sound, in milliseconds, and the sound's position.
fn first_of(pcm: &[i16]) -> (f64, usize) {
    let from = pcm.iter().position(|sample| sample.abs() > LOUD).expect("the agent is heard");
    let part = &pcm[from..from + 640];
    let crossings: Vec<usize> = (1..part.len()).filter(|at| part[at - 1] < 0 && part[*at] >= 0).collect();
    let (first, last) = (crossings[0], crossings[crossings.len() - 1]);
    let hz = (crossings.len() - 1) as f64 * 16_000.0 / (last - first) as f64;
    // The frequency is that of the middle between the crossings.
    (hz - 300.0 - (first + last) as f64 / 32.0, from)
}

/// An agent that sounds already when the caller comes: the caller's recording has its sound from where the server
/// passed it on.
async fn hear_from_the_first_packet(behaviour: Behaviour) {
    let server = RoomServer::with(behaviour).await;
    let stage = Stage::new().await;
    let ((_orders, mut to_do), (tell, _news)) = (mpsc::channel(8), NewsSender::new(64));
    let patience = Patience { join: PATIENCE, agent: PATIENCE, ..Patience::default() };
    let dialer = Dialer::new(&TlsSettings::default());
    let target = target_as("agent", &server.url);
    let agent = RoomCall::attend(target, loopback(), dialer, patience, &mut to_do, &tell).await;
    let mut agent = agent.unwrap_or_else(|end| panic!("{end:?}"));
    let (mut phone, mut pump) = Phone::new(agent.sent_media().expect("it is connected"), 2, 0.0);
    phone.sound = Some(rising);
    let carried = agent.run(&mut pump, &mut to_do, &tell);
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = placement(&stage, &server, 3000);
    placement.folder = Some(folder.path().to_owned());
    let call = async {
        // It is up with its first packets.
        server.wait_track().await;
        stage.call(placement).await.expect("a place is free")
    };
    let report = tokio::select! {
        report = call => report,
        end = carried => panic!("the agent left: {end:?}"),
        () = phone.talk() => unreachable!("it talks for ever"),
    };
    let events = names(&report).join(" ");
    assert!(report.ending.connected, "{events}");
    let begun = lock(&server.room.begun).clone();
    let passed_on = begun.iter().find(|(identity, _)| identity == "dh-42").expect("it was subscribed").1;
    let passed_on_ms = f64::from(passed_on.wrapping_sub(phone.first.expect("it was sent")) / 48);
    let [_, heard] = channels(report.recording.as_ref().expect("it was recorded"));
    let (heard_ms, position) = first_of(&heard);
    let missing_ms = (heard_ms - passed_on_ms).rem_euclid(3000.0);
    let missing_ms = if missing_ms > 1500.0 { missing_ms - 3000.0 } else { missing_ms };
    println!(
        "passed on from {passed_on_ms} ms on, heard from {heard_ms:.0} ms on at sample {position}; {missing_ms:.0} ms are missing"
    );
    assert!(missing_ms.abs() <= MISSING_MS, "{missing_ms} ms: {events}");
    // The call begins no later than its first sound.
    assert!(position < 16 * 60, "the sound begins at sample {position}");
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_heard_from_its_first_packet_over_two_connections() {
    hear_from_the_first_packet(Behaviour::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_heard_from_its_first_packet_over_one_connection() {
    hear_from_the_first_packet(Behaviour { knows_joint: true, ..Behaviour::default() }).await;
}

/// The caller can hear for half a second before it can speak, and is up then.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_heard_from_its_first_packet_while_the_caller_cannot_speak() {
    hear_from_the_first_packet(Behaviour { sent_first: 25, ..Behaviour::default() }).await;
}
