//! Secure RTP: strangers' bytes are refused and leave what was refused as it was; own packets come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_fuzz::{datagrams, hear, leg};
use ringer_media::codec::Codec;
use ringer_media::rtp::packet::header_bytes;
use ringer_media::rtp::srtp::{MAX_OVERHEAD, MasterKey, Opener, Protector, SrtpParams, Suite};

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let suite = Suite::ALL[usize::from(first) % 3];
    let key = MasterKey::new(suite, &vec![7; 16 + suite.salt_bytes()]).expect("the length is that of the suite");
    let (mut protector, mut opener) = (Protector::new(suite, &key), Opener::new(suite, &key));
    for plain in datagrams(rest) {
        let mut packet = plain.to_vec();
        assert!(opener.open(&mut packet).is_err() && packet == plain, "nobody has the key");
        assert!(opener.open_report(&mut packet).is_err() && packet == plain, "nobody has the key");
        let mut buffer = [plain, &[0; MAX_OVERHEAD]].concat();
        let len = protector.protect(&mut buffer, plain.len());
        assert_eq!(len > plain.len(), header_bytes(plain).is_ok());
        // Numbers that go back by 2^15 or more are a new round for the sender, which a receiver cannot know.
        if let Ok(opened) = opener.open(&mut buffer[..len]) {
            assert_eq!(opened, plain);
        }
        let mut buffer = [plain, &[0; MAX_OVERHEAD]].concat();
        let len = protector.protect_report(&mut buffer, plain.len());
        match opener.open_report(&mut buffer[..len]) {
            Ok(opened) => assert_eq!(opened, plain),
            Err(_) => assert_eq!(len, plain.len(), "what was protected can be opened"),
        }
    }
    let params = SrtpParams { suite, send: key, receive: key };
    let leg = hear(leg(Codec::Pcmu, Some(params)), datagrams(rest).map(<[u8]>::to_vec));
    assert_eq!(leg.figures().received, 0);
});
