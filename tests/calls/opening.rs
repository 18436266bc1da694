//! Many calls that are answered at once all open on time: what they open with was made while they rang.

use std::sync::Arc;
use std::time::Duration;

use ringer::engine::{CallReport, CallUpdate, Destination, Placement, SipDial, Speech};
use ringer::human::{self, Profile};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::provider::{Failure, Job, Spoken, Status, Synthesizer, Voice, VoiceWanted};
use ringer_media::call::{CallSpec, Opening};
use ringer_media::codec::Codec;
use ringer_media::seed::Seed;
use tokio::sync::{Semaphore, mpsc, watch};

use super::local;

/// Number of calls at the same time.
const CALLS: usize = 24;
/// Time limit for all calls of the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hums, one text at a time, and counts the texts that it has said.
struct Queue {
    hum: FakeSynthesizer,
    place: Semaphore,
    said: watch::Sender<usize>,
}

impl Synthesizer for Queue {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        self.hum.voice(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            let _place = self.place.acquire().await;
            self.hum.synthesize(text, voice, out).await?;
            self.said.send_modify(|said| *said += 1);
            Ok(())
        })
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

fn placement(synthesizer: &dyn Synthesizer, target: String, opening: Opening, seed: u64) -> Placement {
    let (profile, seed) = (Profile::default(), Seed(seed));
    let spec = CallSpec { seed, opening, ..CallSpec::default() };
    Placement {
        id: "1".into(),
        destination: Destination::Sip(SipDial { target, codecs: vec![Codec::Pcmu], ..SipDial::default() }),
        fluency: profile.fluency(seed),
        language: "en".into(),
        mind: human::mind(profile, None, seed),
        voice: synthesizer.voice(&VoiceWanted { seed, ..VoiceWanted::of("en") }).ok(),
        follows: None,
        keyterms: Vec::new(),
        folder: None,
        captured: false,
        spec,
    }
}

async fn report(news: &mut mpsc::Receiver<CallUpdate>) -> CallReport {
    loop {
        match news.recv().await {
            Some(CallUpdate::Ended(report)) => return *report,
            Some(_) => {}
            None => panic!("the call was lost"),
        }
    }
}

#[tokio::test]
async fn calls_that_are_answered_at_once_open_on_time() {
    let synthesizer =
        Arc::new(Queue { hum: FakeSynthesizer::default(), place: Semaphore::new(1), said: watch::Sender::new(0) });
    let speech = || Speech { synthesizer: synthesizer.clone(), recognizer: Arc::new(FakeRecognizer::new(&[], 0)) };
    let (callers, _) = local::engine(20_000..=29_999, CALLS, speech()).await;
    let (agents, mut incoming) = local::engine(20_000..=29_999, CALLS, speech()).await;
    let mut calls = Vec::new();
    for seed in 0..CALLS as u64 {
        let target = format!("sip:agent@{}", agents.sip_address());
        let opening = Opening::Say("Good morning to you.".into());
        calls.push(callers.place(placement(&*synthesizer, target, opening, seed)).await.expect("a place is free"));
    }
    let test = async {
        let mut ringing = Vec::new();
        for _ in 0..CALLS {
            let call = incoming.recv().await.expect("the engine runs");
            agents.ring(&call).await;
            ringing.push(call);
        }
        synthesizer.said.subscribe().wait_for(|said| *said == CALLS).await.expect("it speaks on");
        let mut answered = Vec::new();
        for call in ringing {
            let listens = Opening::Listen { open_after_ms: None };
            let agent = placement(&*synthesizer, String::new(), listens, 99);
            answered.push(agents.answer(call, agent).await.expect("a place is free"));
        }
        for call in &mut calls {
            while let Some(news) = call.news.recv().await {
                if matches!(&news, CallUpdate::Event(entry) if entry.name() == "speech.ended" && entry.side_name() == "dh")
                {
                    break;
                }
            }
            call.control.hangup(ringer_media::call::EndReason::ApiHangup);
        }
        let mut reports = Vec::new();
        for call in &mut calls {
            reports.push(report(&mut call.news).await);
        }
        reports
    };
    let reports = tokio::time::timeout(PATIENCE, test).await.expect("openings are asked for while it rings");
    for report in reports {
        let opened = report.timeline.iter().find(|entry| entry.name() == "speech.started" && entry.side_name() == "dh");
        let at_ms = opened.expect("it opens").offset_ms();
        let late = report.timeline.iter().any(|entry| entry.name() == "late_turn");
        assert!((400.0..=900.0).contains(&at_ms) && !late, "opens at {at_ms} ms");
    }
    assert_eq!(*synthesizer.said.borrow(), CALLS, "each was made once");
    callers.stop().await;
    agents.stop().await;
}
