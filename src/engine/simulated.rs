//! Calls in virtual time in the place of real ones: the same placements and reports, only that nobody waits for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_media::netem::NetemSpec;
use ringer_provider::Synthesizer;
use ringer_transport::peer::PeerInfo;
use tokio::sync::mpsc;

use super::sim::{self, Faults, Sim};
use super::{CallControl, CallHandle, CallReport, CallUpdate, Destination, PlaceError, Placement, SipDial};

/// Makes the side that is called, of the address and the caller.
pub type Answerer = Arc<dyn Fn(&str, &Placement) -> Placement + Send + Sync>;

/// Longest call in virtual time.
const LONGEST: Duration = Duration::from_secs(3600);
/// News that may wait for a watcher.
const WATCH: usize = 64;

/// Begins a call; its news come when it is over.
///
/// # Errors
/// See [`PlaceError`].
pub(super) fn place(
    placement: Placement,
    answer: &Answerer,
    synthesizer: Arc<dyn Synthesizer>,
    clock: Clock,
    tasks: &ringer_base::tasks::Tasks,
    permit: impl Send + 'static,
) -> Result<CallHandle, PlaceError> {
    let Destination::Sip(dial) = &placement.destination else {
        return Err(PlaceError::BadTarget("only SIP addresses are called in virtual time".to_owned()));
    };
    let agent = answer(&dial.target, &placement);
    let codec = placement.destination.codecs().first().map(|codec| codec.name());
    let (folder, seed, id) = (placement.folder.clone(), placement.spec.seed, placement.id.clone());
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    // In virtual time there is one side to call, whatever its address.
    let here = SipDial { codecs: dial.codecs.clone(), ..SipDial::default() };
    let caller = Placement { folder: None, captured: false, destination: Destination::Sip(here), ..placement };
    let sim = Sim {
        seed,
        network,
        then: None,
        caller,
        agent,
        synthesizer,
        faults: Faults::default(),
        longest: LONGEST,
        script: None,
    };
    let (news, receiver) = mpsc::channel(WATCH);
    // Nobody can hang up a call that is over before it is heard of.
    let (hangup, _) = mpsc::channel(1);
    let began_ms = clock.now_ms();
    tasks.spawn("simulated call", async move {
        let _permit = permit;
        let ran = tokio::task::spawn_blocking(move || sim::run_punctuated(sim)).await;
        let outcome = match ran {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(why)) => return tracing::error!("a simulated call failed: {why}"),
            Err(error) => return tracing::error!(%error, "a simulated call failed"),
        };
        let side = outcome.caller;
        let Some(ending) = side.ending else { return tracing::error!("a simulated call has no end") };
        let connected_at_ms = ending.connected.then_some(began_ms + side.zero.as_millis() as i64);
        let length_ms = ending.samples / ringer_media::frame::PER_MS;
        let (recording, warnings) = keep(folder, &side.recording, side.warnings).await;
        if let Some(at_ms) = connected_at_ms {
            let _ = news.send(CallUpdate::Connected(at_ms)).await;
        }
        let report = CallReport {
            effects: Vec::new(),
            ending,
            timeline: side.timeline,
            connected_at_ms,
            ended_at_ms: connected_at_ms.unwrap_or(began_ms) + length_ms,
            peer: PeerInfo { protocol: "SIP/UDP", call_id: id, codec, ..PeerInfo::default() },
            warnings,
            speaker: "simulated".to_owned(),
            recording,
            agent_errors: Vec::new(),
            variables: None,
        };
        let _ = news.send(CallUpdate::Ended(Box::new(report))).await;
    });
    Ok(CallHandle { news: receiver, control: CallControl { hangup } })
}

/// Writes the recording into the folder of its result.
async fn keep(folder: Option<PathBuf>, wav: &[u8], mut warnings: Vec<String>) -> (Option<PathBuf>, Vec<String>) {
    let Some(folder) = folder.filter(|_| !wav.is_empty()) else { return (None, warnings) };
    let path = folder.join(super::RECORDING);
    let written = async {
        tokio::fs::create_dir_all(&folder).await?;
        tokio::fs::write(&path, wav).await
    };
    match written.await {
        Ok(()) => (Some(path), warnings),
        Err(error) => {
            warnings.push(format!("the recording was not written: {error}"));
            (None, warnings)
        }
    }
}
