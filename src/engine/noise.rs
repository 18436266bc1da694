//! Background noise loops: made once per kind, language and seed, kept in memory for all calls, and on disk for the
//! next start. The people of a place speak the call's language, by the engine's synthesizer; where nobody can say it,
//! speech is imitated.
//!
//! A loop is 1.9 MB and is scaled while mixing, since its level depends on the negotiated codec. Voices are made when
//! no call runs, at the latest after twenty calls. Making twelve people speak takes 4 s of a processor, and beside
//! three calls packets were 5 ms late.

mod people;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use ringer_base::tasks::{Tasks, behind_calls};
use ringer_media::call::NoiseSpec;
use ringer_media::clip::{Clip, write_wav};
use ringer_media::frame::RATE_HZ;
use ringer_media::noise::{Kind, gain_for, generate, seamless};
use ringer_media::seed::{Seed, Stream};
use ringer_provider::{Failure, Synthesizer};

use self::people::{People, people};

/// Length of a loop.
const LOOP_SECONDS: u32 = 60;
/// All calls of an engine share one loop a kind; where a call begins in it is drawn from the call's own seed.
const LOOP_SEED: Seed = Seed(1);

/// Number of calls without a loop after which it is made even while other calls run.
const PATIENT_CALLS: u32 = 20;

/// The loops of an engine.
#[derive(Debug, Default)]
pub struct NoiseBeds {
    folder: Option<PathBuf>,
    beds: Mutex<HashMap<Place, Bed>>,
    /// Loops of noises that users gave, with the audio that they are made of.
    given: Mutex<Vec<(Arc<[i16]>, Bed)>>,
    /// Loops that are being made, or whose making failed.
    asked: Mutex<HashMap<Place, Asked>>,
    /// Voices of the last place, locked while they are made; they may be wanted in another place.
    people: tokio::sync::Mutex<Option<(String, People)>>,
    tasks: Tasks,
}

/// Key of a loop: kind and spoken language.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    kind: Kind,
    /// Language that its people speak; `None`: speech is imitated, or there is none.
    language: Option<String>,
}

/// State of a loop that calls have asked for.
#[derive(Debug, Default)]
struct Asked {
    /// Calls that went without it.
    calls: u32,
    running: bool,
    /// Reason why the last attempt failed.
    failure: Option<String>,
}

/// A loop, and the gains (narrow, wide) at which it is as loud as speech: measuring them takes longer than setting up a
/// call.
#[derive(Clone, Debug)]
struct Bed {
    pcm: Arc<[i16]>,
    gains: [f64; 2],
}

impl Bed {
    fn of(pcm: Arc<[i16]>) -> Bed {
        let gains = [8000, RATE_HZ].map(|rate_hz| gain_for(&pcm, 0.0, rate_hz));
        Bed { pcm, gains }
    }

    /// Returns the noise of one call, `snr_db` below active speech, from a random start in the loop.
    fn under(self, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let [gain_narrow, gain_wide] = self.gains.map(|gain| (gain * 10f64.powf(-snr_db / 20.0)) as f32);
        NoiseSpec { gain_narrow, gain_wide, start: start.index(self.pcm.len()), loop_pcm: self.pcm }
    }
}

impl NoiseBeds {
    /// Loops are also kept in `folder`, when there is one.
    pub fn new(folder: Option<PathBuf>) -> NoiseBeds {
        NoiseBeds { folder, ..NoiseBeds::default() }
    }

    /// Returns the noise of one call, `snr_db` below active speech; its voices are imitated, and the same on every
    /// machine. Makes the loop when it is not there yet (up to a second of computing: not for async tasks or media
    /// threads).
    pub fn bed(&self, kind: Kind, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let place = Place { kind, language: None };
        let mut beds = self.beds();
        let bed = beds.entry(place.clone()).or_insert_with(|| {
            let stored = read_loop(self.path(&place));
            Bed::of(stored.unwrap_or_else(|| make(kind, &[], self.path(&place))))
        });
        bed.clone().under(snr_db, start)
    }

    /// Returns the noise of a call as [`NoiseBeds::bed`] does, for a place whose people speak `language`. No call waits
    /// for their voices: until these are made, the noise imitates speech, and the text says why. The missing loop is
    /// made by [`NoiseBeds::make_asked`].
    pub fn with_voices(
        &self,
        kind: Kind,
        language: &str,
        snr_db: f64,
        start: &mut Stream,
    ) -> (NoiseSpec, Option<String>) {
        if !kind.has_voices() {
            return (self.bed(kind, snr_db, start), None);
        }
        let place = Place { kind, language: Some(language.into()) };
        match self.find_loop(&place) {
            Some(bed) => (bed.under(snr_db, start), None),
            None => {
                let why = self.ask(place);
                (self.bed(kind, snr_db, start), Some(why))
            }
        }
    }

    /// Makes the loop that [`NoiseBeds::with_voices`] gives, unless it is there: seconds, mostly of the synthesizer's.
    /// A failure is the synthesizer's.
    ///
    /// # Errors
    /// `no_talk_for_language`, and those of the synthesizer.
    pub async fn prepare(&self, kind: Kind, language: &str, synthesizer: &dyn Synthesizer) -> Result<(), Failure> {
        let place = Place { kind, language: Some(language.into()) };
        let mut last = self.people.lock().await;
        if !kind.has_voices() || self.find_loop(&place).is_some() {
            return Ok(());
        }
        let known = last.take().filter(|(spoken, _)| spoken == language);
        let (_, voices) = match known {
            Some(known) => last.insert(known),
            None => last.insert((language.into(), people(language, LOOP_SEED, synthesizer).await?)),
        };
        let (voices, path) = (voices.clone(), self.path(&place));
        let made = behind_calls("noise", move || Bed::of(make(kind, &voices, path))).await;
        let bed = made.map_err(|message| Failure { code: "noise_failed", message })?;
        self.beds().insert(place, bed);
        Ok(())
    }

    /// Returns the noise of a call as [`NoiseBeds::bed`] does, from audio of a user at 16 kHz. Its loop is kept while a
    /// call uses it.
    pub fn custom(&self, pcm: &Arc<[i16]>, snr_db: f64, start: &mut Stream) -> NoiseSpec {
        let mut given = self.given.lock();
        given.retain(|(source, _)| Arc::strong_count(source) > 1);
        let known = given.iter().find(|(source, _)| Arc::ptr_eq(source, pcm)).map(|(_, bed)| bed.clone());
        let bed = known.unwrap_or_else(|| {
            let bed = Bed::of(seamless(pcm).into());
            given.push((pcm.clone(), bed.clone()));
            bed
        });
        bed.under(snr_db, start)
    }

    fn beds(&self) -> MutexGuard<'_, HashMap<Place, Bed>> {
        self.beds.lock()
    }

    /// Returns a loop that is in memory or on disk.
    fn find_loop(&self, place: &Place) -> Option<Bed> {
        let mut beds = self.beds();
        if let Some(bed) = beds.get(place) {
            return Some(bed.clone());
        }
        let bed = Bed::of(read_loop(self.path(place))?);
        beds.insert(place.clone(), bed.clone());
        Some(bed)
    }

    /// Notes that a call wants `place`; returns the reason why it is not there yet.
    fn ask(&self, place: Place) -> String {
        let mut asked = self.asked.lock();
        let state = asked.entry(place).or_default();
        state.calls += 1;
        let why = state.failure.as_deref().unwrap_or("they are made when no call is running, for those that follow");
        format!("background_noise: its voices are imitated and say no words: {why}")
    }

    /// Makes in the background what calls have asked for, when no call is running (`idle`): making it takes seconds of
    /// the processor. What many calls have asked for is made beside them.
    ///
    /// Runs where tasks can be started.
    pub fn make_asked(self: &Arc<Self>, synthesizer: &Arc<dyn Synthesizer>, idle: bool) {
        let mut asked = self.asked.lock();
        let due = |state: &Asked| !state.running && state.calls >= if idle { 1 } else { PATIENT_CALLS };
        for (place, state) in asked.iter_mut().filter(|(_, state)| due(state)) {
            state.running = true;
            let (beds, synthesizer, place) = (self.clone(), synthesizer.clone(), place.clone());
            self.tasks.spawn("noise", async move {
                let language = place.language.as_deref().unwrap_or_default();
                let made = beds.prepare(place.kind, language, &*synthesizer).await;
                if let Err(failure) = &made {
                    tracing::warn!(code = failure.code, "background voices could not be made: {}", failure.message);
                }
                let failure = made.err().map(|failure| failure.message);
                let mut asked = beds.asked.lock();
                asked.insert(place, Asked { failure, ..Asked::default() });
            });
        }
    }

    fn path(&self, place: &Place) -> Option<PathBuf> {
        let language = place.language.as_ref().map(|language| format!("-{language}")).unwrap_or_default();
        Some(self.folder.as_ref()?.join(format!("{}{language}-{}.wav", place.kind.name(), env!("CARGO_PKG_VERSION"))))
    }
}

fn read_loop(path: Option<PathBuf>) -> Option<Arc<[i16]>> {
    let clip = Clip::from_wav(&fs::read(path?).ok()?).ok()?;
    let whole = clip.rate_hz == RATE_HZ && clip.pcm.len() == (LOOP_SECONDS * RATE_HZ) as usize;
    whole.then(|| clip.pcm.into())
}

fn make(kind: Kind, people: &[Arc<[i16]>], path: Option<PathBuf>) -> Arc<[i16]> {
    let pcm = generate(kind, LOOP_SEED, LOOP_SECONDS, people);
    if let Some(path) = path {
        // The cache only saves time: what cannot be written is made again.
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| fs::write(&path, write_wav(RATE_HZ, 1, &pcm))) {
            tracing::warn!("the noise cache {} cannot be written: {error}", path.display());
        }
    }
    pcm.into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use ringer_media::resample::resample_whole;
    use ringer_provider::fake::FakeSynthesizer;
    use ringer_provider::{Job, Spoken, Status, Voice, VoiceWanted};
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn loops_are_kept_on_disk_and_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("noise");
        let of = |beds: &NoiseBeds| beds.bed(Kind::Traffic, 10.0, &mut Seed(4).stream("noise"));
        let beds = NoiseBeds::new(Some(cache.clone()));
        let made = of(&beds);
        assert!(Arc::ptr_eq(&made.loop_pcm, &of(&beds).loop_pcm), "the calls of an engine share a loop");
        let path = beds.path(&Place { kind: Kind::Traffic, language: None }).expect("there is a folder");
        let stored = Clip::from_wav(&fs::read(&path).expect("it was written")).expect("a WAV file");
        assert_eq!(stored.pcm[..], made.loop_pcm[..]);
        // Another start takes what is there, and makes anew what is not whole.
        let turned: Vec<i16> = stored.pcm.iter().map(|&x| -x).collect();
        fs::write(&path, write_wav(RATE_HZ, 1, &turned)).expect("the cache can be written");
        assert_eq!(of(&NoiseBeds::new(Some(cache.clone()))).loop_pcm[..], turned[..]);
        fs::write(&path, write_wav(RATE_HZ, 1, &turned[..16_000])).expect("the cache can be written");
        let again = of(&NoiseBeds::new(Some(cache)));
        assert_eq!((&again.loop_pcm, again.gain_narrow, again.start), (&made.loop_pcm, made.gain_narrow, made.start));
    }

    /// Hums `tone_hz` for every word, and counts what it says.
    struct Hum {
        inner: FakeSynthesizer,
        said: AtomicUsize,
        voices: Mutex<Vec<Seed>>,
    }

    impl Hum {
        fn of(tone_hz: f32) -> Hum {
            let inner = FakeSynthesizer { tone_hz, ..FakeSynthesizer::default() };
            Hum { inner, said: AtomicUsize::new(0), voices: Mutex::default() }
        }

        fn broken() -> Hum {
            let failure = Failure { code: "synthesizer_missing", message: "no program".into() };
            Hum { inner: FakeSynthesizer { failure: Some(failure), ..FakeSynthesizer::default() }, ..Hum::of(440.0) }
        }
    }

    impl Synthesizer for Hum {
        fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
            self.voices.lock().push(wanted.seed);
            self.inner.voice(wanted)
        }

        fn synthesize<'a>(
            &'a self,
            text: &'a str,
            voice: &'a Voice,
            out: mpsc::Sender<Spoken>,
        ) -> Job<'a, Result<(), Failure>> {
            self.said.fetch_add(1, Ordering::Relaxed);
            self.inner.synthesize(text, voice, out)
        }

        fn status(&self) -> Status {
            self.inner.status()
        }
    }

    const VOICED: [Kind; 7] =
        [Kind::Office, Kind::Talking, Kind::Cafe, Kind::Park, Kind::Tv, Kind::NoisyRestaurant, Kind::Hospital];

    /// Returns the share of the power that lies within 40 Hz of `hz`.
    fn share_at(pcm: &[i16], hz: f64) -> f64 {
        let (mut tone, mut whole) = (0.0, 0.0);
        for block in pcm.chunks_exact(800) {
            let (mut sin, mut cos) = (0.0, 0.0);
            for (n, &x) in block.iter().enumerate() {
                let turn = std::f64::consts::TAU * hz * n as f64 / f64::from(RATE_HZ);
                (sin, cos) = (sin + f64::from(x) * turn.sin(), cos + f64::from(x) * turn.cos());
                whole += f64::from(x).powi(2);
            }
            tone += 2.0 * (sin * sin + cos * cos) / block.len() as f64;
        }
        tone / whole
    }

    fn level_dbov(pcm: impl Iterator<Item = f64>) -> f64 {
        let (count, sum) = pcm.fold((0, 0.0), |(count, sum), x| (count + 1, sum + x * x));
        10.0 * (sum / f64::from(count) / 32_768f64.powi(2)).log10()
    }

    fn voices_of(beds: &NoiseBeds, kind: Kind, language: &str) -> (NoiseSpec, Option<String>) {
        beds.with_voices(kind, language, 10.0, &mut Seed(4).stream("noise"))
    }

    fn make(beds: &Arc<NoiseBeds>, by: &Arc<Hum>, idle: bool) {
        let by: Arc<dyn Synthesizer> = by.clone();
        beds.make_asked(&by, idle);
    }

    #[tokio::test]
    async fn people_of_a_place_say_words_of_the_call_s_language() {
        let folder = tempfile::tempdir().expect("a folder");
        let (low, high) = (Arc::new(Hum::of(500.0)), Arc::new(Hum::of(900.0)));
        let beds = Arc::new(NoiseBeds::new(Some(folder.path().into())));
        for kind in VOICED {
            beds.prepare(kind, "en", &*low).await.expect("it hums");
        }
        assert_eq!(low.voices.lock().len(), 12, "they speak once for all places");
        let said = low.said.load(Ordering::Relaxed);
        beds.prepare(Kind::Talking, "de", &*high).await.expect("it hums");
        assert_eq!(high.said.load(Ordering::Relaxed), said);
        for kind in VOICED {
            let (noise, warning) = voices_of(&beds, kind, "en");
            assert_eq!(warning, None, "{kind:?}");
            let imitated = beds.bed(kind, 10.0, &mut Seed(4).stream("noise"));
            assert_ne!(noise.loop_pcm, imitated.loop_pcm, "{kind:?}");
            // The tone shows who speaks; a place has other sounds beside it, and wind more than a child.
            let [heard, without] = [&noise, &imitated].map(|noise| share_at(&noise.loop_pcm, 500.0));
            assert!(kind == Kind::Park || heard > 2.0 * without, "{kind:?}: {heard:.3} and {without:.3}");
            let again =
                generate(kind, LOOP_SEED, LOOP_SECONDS, &people("en", LOOP_SEED, &*low).await.expect("it hums"));
            assert_eq!(noise.loop_pcm[..], again[..], "{kind:?}: the same seed gives the same loop");
            // Narrow: what is left at 8 kHz.
            let scaled = |gain: f32, pcm: &[i16]| level_dbov(pcm.iter().map(|&x| f64::from(x) * f64::from(gain)));
            let narrow = resample_whole(&noise.loop_pcm, RATE_HZ, 8000);
            let [wide, narrow] = [scaled(noise.gain_wide, &noise.loop_pcm), scaled(noise.gain_narrow, &narrow)];
            assert!((wide + 36.0).abs() < 0.5 && (narrow + 36.0).abs() < 0.5, "{kind:?}: {wide:.2} {narrow:.2} dBov");
            let (first, last) = (noise.loop_pcm[0], noise.loop_pcm[noise.loop_pcm.len() - 1]);
            let step = |pair: &[i16]| (i32::from(pair[1]) - i32::from(pair[0])).abs();
            let near =
                noise.loop_pcm[..1600].windows(2).chain(noise.loop_pcm[noise.loop_pcm.len() - 1600..].windows(2));
            assert!(step(&[last, first]) <= near.map(step).max().expect("not empty"), "{kind:?}: a step over the seam");
        }
        let (german, _) = voices_of(&beds, Kind::Talking, "de");
        assert!(share_at(&german.loop_pcm, 900.0) > 0.5 && share_at(&german.loop_pcm, 500.0) < 0.1);
        // Another start finds them on disk, and nobody speaks again.
        let (next, silent) = (Arc::new(NoiseBeds::new(Some(folder.path().into()))), Arc::new(Hum::broken()));
        let (stored, warning) = voices_of(&next, Kind::Talking, "de");
        assert_eq!((warning, &stored.loop_pcm), (None, &german.loop_pcm));
        assert_eq!(silent.said.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn no_call_waits_for_words_and_it_is_told() {
        let beds = Arc::new(NoiseBeds::new(None));
        let hum = Arc::new(Hum::of(500.0));
        let imitated = beds.bed(Kind::Tv, 10.0, &mut Seed(4).stream("noise"));
        let (first, warning) = voices_of(&beds, Kind::Tv, "en");
        assert_eq!((&first.loop_pcm, first.start), (&imitated.loop_pcm, imitated.start));
        assert!(warning.is_some_and(|warning| warning.contains("when no call is running")));
        // Calls that are running are not disturbed, until there were many.
        for _ in 1..PATIENT_CALLS {
            make(&beds, &hum, false);
            assert_eq!(hum.voices.lock().len(), 0);
            assert!(voices_of(&beds, Kind::Tv, "en").1.is_some());
        }
        assert_eq!(voices_of(&beds, Kind::Traffic, "en").1, None, "nobody speaks there");
        make(&beds, &hum, false);
        make(&beds, &hum, true);
        beds.tasks.stop().await;
        let (made, warning) = voices_of(&beds, Kind::Tv, "en");
        assert_eq!(warning, None);
        assert_ne!(made.loop_pcm, imitated.loop_pcm);
        assert_eq!(hum.voices.lock().len(), 12, "once");
    }

    #[tokio::test]
    async fn where_nobody_can_say_it_speech_is_imitated() {
        let broken = Arc::new(Hum::broken());
        for (language, why) in [("en", "no program"), ("xx", "language xx")] {
            let beds = Arc::new(NoiseBeds::new(None));
            voices_of(&beds, Kind::Talking, language);
            make(&beds, &broken, true);
            beds.tasks.stop().await;
            let imitated = beds.bed(Kind::Talking, 10.0, &mut Seed(4).stream("noise"));
            let (noise, warning) = voices_of(&beds, Kind::Talking, language);
            assert_eq!(noise.loop_pcm, imitated.loop_pcm);
            assert!(warning.as_ref().is_some_and(|warning| warning.contains(why)), "{warning:?}");
        }
    }
}
