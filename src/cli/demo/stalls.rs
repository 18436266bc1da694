//! A witness of how well this machine keeps time: a thread that does nothing but sleep. What makes its wake-ups late makes
//! those of every program late, whatever the program does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::cli::count;

/// Time between two wake-ups: that of two frames.
const PERIOD: Duration = Duration::from_millis(20);

/// Lateness of a wake-up from which this machine counts as having stood still: that of a frame that is sent late.
const LATE: Duration = Duration::from_millis(20);

/// Times at which this machine stood still.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of wake-ups that were more than 20 ms late.
    pub count: usize,
    /// Lateness of the latest one, in milliseconds.
    pub worst_ms: u64,
}

impl Stalls {
    /// Adds a wake-up.
    fn add(&mut self, late: Duration) {
        if late > LATE {
            self.count += 1;
            self.worst_ms = self.worst_ms.max(late.as_millis() as u64);
        }
    }

    /// Returns the words for them; nothing if there was none.
    pub fn reason(self) -> Option<String> {
        let Stalls { count: number, worst_ms } = self;
        let times = count(number, "time");
        (number > 0).then(|| format!("this machine stood still for more than 20 ms {times}, for {worst_ms} ms at most"))
    }
}

/// Thread that sleeps and notes how late it wakes.
pub struct Witness {
    stalls: Arc<Mutex<Stalls>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    /// Starts it.
    pub fn start() -> Result<Witness, String> {
        let (stalls, is_over) = (Arc::<Mutex<Stalls>>::default(), Arc::<AtomicBool>::default());
        let (noted, over) = (stalls.clone(), is_over.clone());
        let watch = move || {
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(PERIOD);
                noted.lock().add(began.elapsed().saturating_sub(PERIOD));
            }
        };
        let thread = std::thread::Builder::new().name("witness".to_owned()).spawn(watch);
        let thread = thread.map_err(|error| format!("the thread of the witness: {error}"))?;
        Ok(Witness { stalls, is_over, thread: Some(thread) })
    }

    /// Returns what was noted since the last time.
    pub fn take(&self) -> Stalls {
        std::mem::take(&mut self.stalls.lock())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wake_ups_are_counted() {
        let mut stalls = Stalls::default();
        for ms in [0, 20, 21, 90, 40] {
            stalls.add(Duration::from_millis(ms));
        }
        assert_eq!(stalls, Stalls { count: 3, worst_ms: 90 });
        assert_eq!(Stalls::default().reason(), None);
        let witness = Witness::start().expect("a thread");
        witness.stalls.lock().add(Duration::from_millis(50));
        assert!(witness.take().count > 0);
    }
}
