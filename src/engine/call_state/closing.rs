//! The files of a call that is over.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringer_media::call::Ending;
use ringer_media::frame::{PER_MS, Sample};
use ringer_media::recording::Layout;

use super::CallState;
use crate::recorder;
use crate::recorder::Written;

/// Time limit for files to close.
const CLOSING: Duration = Duration::from_secs(5);

impl CallState {
    /// Closes the files of audio; returns the recording, when it was written.
    pub(crate) async fn close_recording(&mut self, ending: &Ending) -> Option<PathBuf> {
        if ending.quality.recording_dropped > 0 {
            let frames = ending.quality.recording_dropped;
            self.files.warnings.push(format!("{frames} frames of the recording are silence: the disk did not keep up"));
        }
        let mut whole = Vec::new();
        for (Written { path, state, closed }, layout) in std::mem::take(&mut self.files.recording) {
            let closed = tokio::time::timeout(CLOSING, closed).await.is_ok();
            let fault = state.problem().or_else(|| {
                // What was sent last lies behind the end, and more of both where the other side's audio had stopped
                // before.
                (closed && ending.connected).then(|| cut_to(&path, layout, ending.samples)).flatten()
            });
            let mut is_there = fault.is_none();
            if let Some(why) = &fault {
                let part = if closed && ending.connected { recorder::keep_part(&path, layout) } else { None };
                is_there = part.is_some();
                let warning = match part.map(|samples| samples as f64) {
                    Some(samples) => {
                        let [kept_s, all_s] = [samples, ending.samples as f64].map(|n| n / (1000.0 * PER_MS as f64));
                        format!("the recording ends at {kept_s:.1} s of {all_s:.1} s: {why}")
                    }
                    None => format!("the recording could not be written: {why}"),
                };
                self.files.warnings.push(warning);
            }
            whole.push((closed && ending.connected && is_there).then_some(path));
        }
        whole.into_iter().next().flatten()
    }

    /// Closes the file of captured datagrams.
    pub(crate) async fn close_capture(&mut self) {
        let Some((Written { state, closed, .. }, missing)) = self.files.capture.take() else { return };
        let _ = tokio::time::timeout(CLOSING, closed).await;
        if let Some(why) = state.problem() {
            self.files.warnings.push(format!("the packet capture could not be written: {why}"));
        }
        let missing = missing.load(Ordering::Relaxed);
        if missing > 0 {
            self.files.warnings.push(format!("{missing} packets are missing in the capture: the disk did not keep up"));
        }
    }
}

/// Cuts a file to `samples`; returns the error, if there was one.
fn cut_to(path: &Path, layout: Layout, samples: Sample) -> Option<String> {
    let cut = recorder::cut(path, layout, samples.max(0) as u64);
    cut.err().map(|error| format!("{}: {error}", path.display()))
}
