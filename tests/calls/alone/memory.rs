//! Memory of a connected call, all of it: the call, its rings and channels, its task, its SIP dialog.

use serde_json::Value;
use tokio::time::timeout;

use crate::program::{PATIENCE, ringer};

/// Largest memory of a PCMU call without a bad connection, in KiB. Memory that the process allocates once for all calls
/// counts too.
const MOST_KIB: f64 = 260.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_holds_at_most_260_kib() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut load = ringer(&["load", "--calls", "40", "--seconds", "5", "--json"]);
    let load = load.env("TMPDIR", folder.path()).output();
    let done = timeout(PATIENCE, load).await.expect("it ends in time").expect("the program was built");
    let said = String::from_utf8_lossy(&done.stdout);
    let figures: Value = serde_json::from_str(&said).expect("one JSON object");
    let kib = figures["memory_kib_per_call"].as_f64();
    println!("{kib:?} KiB a call");
    assert_eq!((&figures["connected"], &figures["failed"]), (&40.into(), &0.into()), "{said}");
    assert!(kib.is_some_and(|kib| kib <= MOST_KIB), "{said}");
}
