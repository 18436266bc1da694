//! Figures of calls in rooms at the server of the tests, printed by `make load`. CPU time is that of the program in
//! `RINGER_PROGRAM`, best a release build.

mod pairs;

use std::time::Duration;

use ringer::clock::monotonic;
use ringer::transport::news::NewsSender;
use ringer::transport::room::{Patience, RoomCall};
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::websocket::dial::Dialer;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::program::{Program, ringer};
use crate::rooms::guests::target_as;
use crate::rooms::pairs::delay_ms;
use crate::rooms::phone::{PATIENCE, Phone, loopback};
use crate::rooms::server::{Behaviour, KEY, RoomServer, SECRET, lock};

/// Calls at once, and the seconds for which they are measured.
const CALLS: &str = "50";
const SECONDS: &str = "20";

/// Calls of which the first audio is measured.
const FIRSTS: usize = 5;

/// Sounds of which the delay is measured, each way.
const SOUNDS: usize = 10;

/// Loudness of a sample that is a tone.
const LOUD: i16 = 1500;

#[tokio::test(flavor = "multi_thread")]
async fn cpu_time_of_calls_at_once() {
    let server = RoomServer::with(Behaviour { has_rooms: true, ..Behaviour::default() }).await;
    let to = format!("room:{}", server.url);
    // The server of the tests takes its time for each call that begins.
    let flags = ["load", &to, "--far", "--calls", CALLS, "--seconds", SECONDS, "--rate", "5", "--json"];
    let mut command = ringer(&flags);
    command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET);
    let mut load = Program::start(&mut command);
    let figures: Value = serde_json::from_str(&load.line().await).expect("it prints one object");
    println!("{figures}");
    assert_eq!((&figures["connected"], &figures["failed"]), (&50.into(), &0.into()), "{figures}");
    let cpu = figures["cpu_ms_per_call_second"].as_f64().expect("all calls stayed up");
    println!("{CALLS} room calls: {cpu:.2} CPU ms a call and second (at most 9)");
}

/// Both sides of a call in a room: the caller, who waits for the agent, and the agent, who comes then and sends a tone
/// from its first packet on. Returns the milliseconds from the time when the agent's track is up to its sound, and
/// those of sounds each way.
async fn call_in_a_room(sounds: usize) -> (usize, Vec<(usize, usize)>) {
    let server = RoomServer::start().await;
    let dialer = || Dialer::new(&TlsSettings::default());
    let ((_near_orders, mut near_told), (near_news, _near_heard)) = (mpsc::channel(8), NewsSender::new(64));
    let ((_far_orders, mut far_told), (far_news, _far_heard)) = (mpsc::channel(8), NewsSender::new(64));
    let patience = Patience { join: PATIENCE, agent: PATIENCE, ..Patience::default() };
    let target = target_as("caller", &server.url);
    let mut opening = Box::pin(RoomCall::open(target, loopback(), dialer(), patience, &mut near_told, &near_news));
    let far = async {
        server.wait_asked("caller", |_| true).await;
        let target = target_as("agent", &server.url);
        RoomCall::attend(target, loopback(), dialer(), patience, &mut far_told, &far_news).await
    };
    let mut far = tokio::select! {
        far = far => far.unwrap_or_else(|end| panic!("{end:?}")),
        _ = &mut opening => panic!("there is no agent yet"),
    };
    let (mut there, mut far_pump) = Phone::new(far.sent_media().expect("it is connected"), 2, 1100.0);
    // The agent's task goes on beside everything else.
    let far_carried = far.run(&mut far_pump, &mut far_told, &far_news);
    tokio::pin!(far_carried);
    let mut near = tokio::select! {
        near = &mut opening => near.unwrap_or_else(|end| panic!("{end:?}")),
        end = &mut far_carried => panic!("the agent left: {end:?}"),
        () = there.talk() => unreachable!("it talks for ever"),
    };
    drop(opening);
    let (mut here, mut near_pump) = Phone::new(near.media().expect("it was settled"), 1, 0.0);
    let near_carried = near.run(&mut near_pump, &mut near_told, &near_news);
    tokio::pin!(near_carried);
    let measured = async {
        let mut ticks = interval(Duration::from_millis(20));
        let is_loud = |phone: &Phone| phone.heard.iter().any(|sample| sample.abs() > LOUD);
        while !is_loud(&here) {
            ticks.tick().await;
            here.tick();
            there.tick();
        }
        let up = lock(&server.room.tracks_up)[0];
        let first_ms = monotonic().since(up).as_millis() as usize;
        here.tone_hz = 500.0;
        let mut delays = Vec::new();
        for _ in 0..sounds {
            let out = delay_ms(&mut here, &mut there, &mut ticks).await;
            delays.push((out, delay_ms(&mut there, &mut here, &mut ticks).await));
        }
        (first_ms, delays)
    };
    tokio::select! {
        measured = measured => measured,
        end = &mut near_carried => panic!("the caller left: {end:?}"),
        end = &mut far_carried => panic!("the agent left: {end:?}"),
    }
}

/// Returns the least, the middle and the greatest.
fn spread(mut found: Vec<usize>) -> String {
    found.sort_unstable();
    format!("{} least, {} middle, {} greatest", found[0], found[found.len() / 2], found[found.len() - 1])
}

#[tokio::test(flavor = "multi_thread")]
async fn time_to_the_first_audio_of_an_agent() {
    let mut found = Vec::new();
    for _ in 0..FIRSTS {
        found.push(call_in_a_room(0).await.0);
    }
    println!("first audio, ms after the agent's track is up: {} (at most 300)", spread(found));
}

#[tokio::test(flavor = "multi_thread")]
async fn delay_through_a_room() {
    let (_, delays) = call_in_a_room(SOUNDS).await;
    let (out, back): (Vec<usize>, Vec<usize>) = delays.into_iter().unzip();
    println!("ms to the agent through the server: {} (at most 90)", spread(out));
    println!("ms from the agent through the server: {} (at most 90)", spread(back));
}
