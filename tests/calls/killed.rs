//! A caller that is killed in the middle of a call leaves recordings that others can read, and that lack at most a
//! second.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use ringer::clock::Clock;
use ringer_media::seed::Seed;
use serde_json::Value;
use tokio::process::Command;

use crate::program::{Program, ringer};

/// Most samples that may be lost: one second.
const MOST_LOST: i64 = 16_000;

/// Returns the one file of this name below a folder.
fn find(folder: &Path, name: &str) -> PathBuf {
    let calls = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    calls.map(|call| call.path().join(name)).find(|path| path.exists()).expect("it was written")
}

/// Channels and samples of a file, as ffprobe reads them, once ffmpeg has decoded all of it.
async fn probe_file(path: &Path) -> (i64, i64) {
    let decode =
        Command::new("ffmpeg").args(["-v", "error", "-xerror", "-i"]).arg(path).args(["-f", "null", "-"]).output();
    let decoded = decode.await.expect("the package ffmpeg is installed");
    assert!(decoded.status.success() && decoded.stderr.is_empty(), "{}", String::from_utf8_lossy(&decoded.stderr));
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-show_entries", "stream=channels,duration_ts", "-of", "json"])
        .arg(path)
        .output();
    let probed = probe.await.expect("the package ffmpeg is installed");
    let probed: Value = serde_json::from_slice(&probed.stdout).expect("ffprobe writes JSON");
    let stream = &probed["streams"][0];
    (stream["channels"].as_i64().expect("channels"), stream["duration_ts"].as_i64().expect("a length"))
}

/// Kills a caller after `events` events of its timeline, and reads what it has left.
async fn killed_after(events: usize, number: usize) {
    let calls = tempfile::tempdir().expect("the folder for temporary files is writable");
    let start = |args: &[&str]| Program::start(ringer(args).env("TMPDIR", calls.path()));
    let ports = format!("{}-{}", 38_000 + 50 * number, 38_049 + 50 * number);
    let mut agent = start(&["agent", "--listen", "127.0.0.1:0", "--once", "1", "--rtp-ports", &ports]);
    let address = agent.address("sip:").await;
    let mut caller = start(&["call", &address, "--json", "--record", "never.wav"]);
    let begun: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
    assert_eq!(begun["event"], "calling");
    let mut written = i64::MIN;
    let (mut after, mut connected) = (0, None);
    while after < events {
        let event: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
        assert_ne!(event["event"], "call.ended", "{event}");
        if event["event"] == "call.connected" {
            connected = Some(Clock::Real.now_ms());
        }
        // Nothing needs to be there of a call of less than a second.
        written = written.max(event["sample"].as_i64().expect("a position"));
        after += usize::from(written >= MOST_LOST);
    }
    // It goes on until it is killed, told or not.
    let lived = (Clock::Real.now_ms() - connected.expect("it was connected")) * 16;
    caller.kill().await;
    let stated = written.max(lived);
    for (name, channels) in [("recording.wav", 2), ("caller_clean.wav", 1)] {
        let found = probe_file(&find(calls.path(), name)).await;
        println!("{name}: killed after {stated} samples or more, {} left, {} lost", found.1, stated - found.1);
        assert_eq!(found.0, channels, "{name}");
        assert!(stated - found.1 <= MOST_LOST, "{name} killed after {stated} samples holds {}", found.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_caller_leaves_can_be_read() {
    let mut draw = Seed(38).stream("moments");
    let moments: Vec<usize> = (0..8).map(|_| 1 + draw.index(30)).collect();
    println!("killed after these many events: {moments:?}");
    for pair in moments.chunks(2) {
        join_all(pair.iter().enumerate().map(|(number, events)| killed_after(*events, number))).await;
    }
}
