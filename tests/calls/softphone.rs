//! A softphone that calls, is called through a trunk, holds, resumes and hangs up.

use std::path::Path;

use ringer::engine::{CallHandle, CallReport, CallUpdate};
use ringer::provider::fake::FakeSynthesizer;
use ringer_media::call::EndReason;
use ringer_media::clip::Clip;
use serde_json::{Value, json};

use super::callers::waiting;
use super::house::House;
use super::peers::best_share;
use super::stage::{Stage, channels};
use crate::peers::registrar::{OWN_NUMBER, Registrar};
use crate::peers::{Peer, Softphone, TONE_HZ};

/// Fails unless the recording in `folder` has the tone of baresip and the hum of the Digital Human, which baresip has
/// heard, too.
fn check_sounds(codec: &str, folder: &Path, peer: &Peer) {
    let hum_hz = f64::from(FakeSynthesizer::default().tone_hz);
    let [own, heard] = channels(&folder.join("recording.wav"));
    assert!(
        best_share(&heard, f64::from(TONE_HZ)) > 0.95,
        "{codec}: the tone is what is heard: {}",
        best_share(&heard, f64::from(TONE_HZ))
    );
    assert!(best_share(&own, hum_hz) > 0.95, "{codec}: {}", best_share(&own, hum_hz));
    let theirs = std::fs::read(peer.heard_file().expect("baresip keeps what it heard")).expect("it is readable");
    let said = Clip::from_wav(&theirs).expect("it is a WAV file").to_16k();
    assert!(best_share(&said, hum_hz) > 0.9, "{codec}: baresip heard {}", best_share(&said, hum_hz));
}

/// baresip calls with each codec, hears the Digital Human and is heard, and either side hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_calls_in_each_codec() {
    let house = House::new().await;
    let check = async |codec: &str, name: &str, number: &str, hangs_up: bool| {
        let id = waiting(&house, json!({}), json!({}), number, if hangs_up { 30 } else { 2 }).await;
        let target = format!("sip:{number}@{}", house.engine.sip_address());
        let peer = Peer::calling_baresip(codec, &target);
        let mut watch = house.watch(&id).await;
        watch.until("RUNNING").await;
        peer.wait_for("Call established");
        if hangs_up {
            watch.until_event("speech.ended").await;
            peer.command("hangup");
        }
        watch.rest().await;
        peer.wait_for("audio: destroyed");
        let result = house.result(&id).await;
        let ended = if hangs_up { json!("AGENT") } else { json!("USER") };
        assert_eq!(result["conversation_ended_by"], ended, "{codec}: {result}");
        let folder = house.folder.path().join("results").join(&id);
        let log = std::fs::read_to_string(folder.join("sip.log")).expect("it was written");
        let (offer, answer) = log.split_once("SIP/2.0 200 OK").expect("it was answered");
        assert!(offer.contains(name) && answer.contains(name), "{codec}: {log}");
        check_sounds(codec, &folder, &peer);
    };
    tokio::join!(
        check("PCMU/8000/1", "PCMU/8000", "15550004001", false),
        check("PCMA/8000/1", "PCMA/8000", "15550004002", true),
        check("G722/16000/1", "G722/8000", "15550004003", false),
        check("opus/48000/2", "opus/48000/2", "15550004004", true),
    );
    house.stop().await;
}

/// baresip registers with Kamailio, which is the trunk by which its telephone number is called, hears the Digital Human
/// and is heard.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_called_through_a_trunk() {
    let registrar = Registrar::new("MD5").start();
    let at = registrar.sip;
    let peer = Softphone { codec: "PCMA/8000/1", registrar: Some(at), ..Softphone::default() }.answering();
    peer.wait_for("200 OK");
    let house = House::with_trunks(&format!(
        "[sip.trunks.near]\nhost = '{}'\nport = {}\nnumbers = ['+15550001112']\nallowed_prefixes = ['+1']",
        at.ip(),
        at.port()
    ))
    .await;
    let human = json!({ "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": "Good day." } });
    let (_, ids) =
        house.queue(json!({ "phone_number": OWN_NUMBER }), json!({ "max_call_duration": 2 }), &[human]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let outcome = (&result["status"], &result["error_code"], &result["conversation_ended_by"]);
    assert_eq!(outcome, (&json!("COMPLETED"), &Value::Null, &json!("USER")), "{result}");
    let noted = (&result["metadata"]["trunk"], &result["metadata"]["caller_number"], &result["metadata"]["codec"]);
    assert_eq!(noted, (&json!("near"), &json!("+15550001112"), &json!("PCMA")), "{result}");
    registrar.wait_for(&format!("seen: INVITE {OWN_NUMBER} from +15550001112"));
    peer.wait_for("audio: destroyed");
    check_sounds("PCMA", &house.folder.path().join("results").join(&ids[0]), &peer);
    house.stop().await;
}

/// Has baresip hold the call after the first words, take it back and hang up, each when the one before was seen.
/// Returns the events that it waited for, and the report.
pub(super) async fn hold_resume_and_hang_up(handle: &mut CallHandle, peer: &Peer) -> (Vec<String>, CallReport) {
    let mut names = Vec::new();
    let report = loop {
        match handle.news.recv().await.expect("the call ends") {
            CallUpdate::Event(entry) => {
                let order = match entry.name() {
                    "speech.ended" if names.is_empty() => Some("hold"),
                    "hold" => Some("resume"),
                    "unhold" => Some("hangup"),
                    _ => None,
                };
                if let Some(order) = order {
                    peer.wait_for("Call established");
                    peer.command(order);
                    names.push(entry.name().to_owned());
                }
            }
            CallUpdate::Ended(report) => break *report,
            CallUpdate::Connected(_) | CallUpdate::Dispatched => {}
        }
    };
    (names, report)
}

/// baresip puts the call on hold, takes it back and hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_holds_resumes_and_hangs_up() {
    let (stage, peer) = (Stage::new().await, Peer::baresip("PCMU/8000/1"));
    let placement = stage.placement(&format!("sip:bob@{}", peer.sip), "Hello there.");
    let mut handle = stage.engine.place(placement).await.expect("it was placed");
    let (names, report) = hold_resume_and_hang_up(&mut handle, &peer).await;
    assert_eq!(names, ["speech.ended", "hold", "unhold"], "each once, in this order");
    assert_eq!(report.ending.reason, EndReason::AgentHangup, "{:?}", report.ending);
    assert!(report.ending.quality.received_packets > 20, "{:?}", report.ending.quality);
    peer.wait_for("audio: destroyed");
}
