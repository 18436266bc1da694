//! The threads that hear, and what waits for them. Running texts wait behind all others, and only while nothing else
//! does.

use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex, MutexGuard};
use ringer_base::clock;
use ringer_speech::whisper::{Bias, Spoken, Transcription, Whisper};

/// A text that would come later than this is not waited for.
const WAIT_MAX_S: f32 = 5.0;
/// Jobs that wait at most.
const JOBS_MAX: usize = 1000;
/// Seconds of a core for a second of speech, until it was measured.
const FACTOR: f32 = 0.1;
/// Share of a new measurement in what is kept.
const LEARN: f32 = 0.1;

/// Speech that is to be heard.
pub(super) trait Job: Send {
    /// Returns its samples, of 16 kHz.
    fn pcm(&self) -> &[i16];

    /// Returns the language that it is in.
    fn language(&self) -> Spoken<'_>;

    /// Returns words that are likely to come in it.
    fn bias(&self) -> &Bias;

    /// True if nobody waits for it any more.
    fn is_cancelled(&self) -> bool;

    /// Takes the text; `None`: it was given up.
    fn finish_with(&self, heard: Option<Transcription>);
}

/// Returns the seconds of a job's audio.
fn seconds(job: &dyn Job) -> f32 {
    job.pcm().len() as f32 / 16_000.0
}

/// The model and what its threads are asked.
pub(super) struct Pool {
    pub model: Whisper,
    threads: usize,
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<(Box<dyn Job>, f32)>,
    running: VecDeque<Box<dyn Job>>,
    factor: Option<f32>,
    closed: bool,
}

/// Holds a pool open: its threads end when this is dropped and nothing waits any more.
pub(super) struct Open(pub Arc<Pool>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.news.notify_all();
    }
}

impl Pool {
    /// Starts `threads` threads, 0 for one a core.
    pub(super) fn start(model: Whisper, threads: usize) -> std::io::Result<Open> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = if threads == 0 { cores } else { threads };
        let (queue, news) = (Mutex::default(), Condvar::new());
        let open = Open(Arc::new(Pool { model, threads, queue, news }));
        for index in 0..threads {
            let pool = open.0.clone();
            thread::Builder::new().name(format!("whisper-{index}")).spawn(move || {
                // SAFETY: a plain system call; who = 0 is this thread. A refusal leaves the priority as it was.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
                while let Some((job, gives_way)) = pool.next() {
                    pool.work(&*job, gives_way);
                }
            })?;
        }
        Ok(open)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Puts a job in the queue. False: its text would come too late.
    pub(super) fn ask(&self, job: Box<dyn Job>) -> bool {
        let mut queue = self.lock();
        // Jobs that nobody wants any more take no time.
        let wanted = queue.jobs.iter().filter(|(job, _)| !job.is_cancelled());
        let wait_s =
            wanted.map(|(_, seconds)| seconds).sum::<f32>() * queue.factor.unwrap_or(FACTOR) / self.threads as f32;
        if queue.closed || wait_s > WAIT_MAX_S || queue.jobs.len() >= JOBS_MAX {
            return false;
        }
        let seconds = seconds(&*job);
        queue.jobs.push_back((job, seconds));
        self.news.notify_one();
        true
    }

    /// Asks for a running text, unless something else waits. False: something does.
    pub(super) fn ask_running(&self, job: Box<dyn Job>) -> bool {
        let mut queue = self.lock();
        let idle = !queue.closed && queue.jobs.is_empty() && queue.running.len() < self.threads;
        if idle {
            queue.running.push_back(job);
            self.news.notify_one();
        }
        idle
    }

    /// Returns the next job, and true if it gives way to others that come; `None` when there is none and never will be.
    fn next(&self) -> Option<(Box<dyn Job>, bool)> {
        let mut queue = self.lock();
        loop {
            if let Some((job, _)) = queue.jobs.pop_front() {
                return Some((job, false));
            }
            if let Some(job) = queue.running.pop_front() {
                return Some((job, true));
            }
            if queue.closed {
                return None;
            }
            self.news.wait(&mut queue);
        }
    }

    /// Hears a job. One that gives way is given up as soon as another waits.
    fn work(&self, job: &dyn Job, gives_way: bool) {
        let is_off = || job.is_cancelled() || (gives_way && !self.lock().jobs.is_empty());
        let hear = || self.model.hear_with(job.pcm(), job.language(), job.bias(), &is_off);
        // A fault of the model costs this job its text, and no thread.
        let hear = || catch_unwind(AssertUnwindSafe(hear)).ok().flatten();
        let (heard, spent_s) = clock::seconds_of(|| (!job.is_cancelled()).then(hear).flatten());
        if heard.is_some() {
            let mut queue = self.lock();
            let before = queue.factor.unwrap_or(FACTOR);
            queue.factor = Some(before + LEARN * (spent_s as f32 / seconds(job).max(0.5) - before));
        }
        job.finish_with(heard);
    }
}
