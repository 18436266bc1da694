//! WAV files of users: read or refused, in memory that is in proportion to them, and what is written can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_media::clip::wav::stream::WavStream;
use ringer_media::clip::{Clip, trim_silence, write_wav};

fuzz_target!(|data: &[u8]| {
    let (mut stream, mut given) = (WavStream::default(), 0);
    let is_read = data
        .chunks(1 + data.len() % 29)
        .all(|piece| stream.push(piece, &mut |_, frames| given += frames.len()).is_ok());
    assert!(given <= data.len());
    if is_read {
        let _ = stream.finish(&mut |_, frames| given += frames.len());
        assert!(given <= data.len());
    }
    let Ok(clip) = Clip::from_wav(data) else { return };
    assert!(clip.pcm.len() <= data.len() && (1000..=192_000).contains(&clip.rate_hz));
    let again = Clip::from_wav(&write_wav(clip.rate_hz, 1, &clip.pcm));
    assert_eq!(again.as_ref(), Ok(&clip));
    let words = trim_silence(&clip.pcm);
    assert!(words.start <= words.end && words.end <= clip.pcm.len());
    clip.to_16k();
});
