//! Counts of lost, late and concealed packets against those of the simulated network. `-- --nocapture counts` prints
//! the figures.

use super::*;

#[test]
fn lost_late_and_concealed_are_what_the_network_did() {
    for (share, jitter_ms, duplicate, held_back) in [
        (0.05, 0.0, 0.0, 0.0),
        (0.0, 60.0, 0.1, 0.0),
        (0.05, 60.0, 0.1, 0.0),
        (0.1, 150.0, 0.0, 0.0),
        (0.05, 30.0, 0.0, 0.02),
    ] {
        let mut peer = Peer::new(Codec::Pcmu);
        // Over the wrap of the sequence number (after 16 packets), of the timestamp (after 26), and once more (after
        // 65552).
        peer.talk(0, 1_400_000, 20, false);
        let count = peer.sent.len() as u64;
        let spec = NetemSpec {
            loss: Loss::Independent(share),
            jitter_ms,
            overtake: true,
            duplicate,
            reorder: held_back,
            reorder_ms: 300.0,
            ..net_with_delay(30.0)
        };
        let (take, dropped) = hear(Codec::Pcmu, &peer.sent, spec, 1_401_000);
        let figures = take.figures;
        println!(
            "loss {share} jitter {jitter_ms} ms held back {held_back}: sent {count}, dropped {dropped}, {figures:?}, steps {}",
            take.steps.len()
        );
        assert_eq!(figures.received, count - dropped);
        // A loss after the last packet received cannot be known.
        assert!((0..=4).contains(&(dropped - figures.lost)), "{figures:?} {dropped}");
        assert_eq!(figures.concealed_ms, (figures.lost + figures.late) * 20, "{figures:?}");
        assert_eq!((figures.duplicates > 0, figures.foreign, figures.source_changes), (duplicate > 0.0, 0, 0));
        // Packets that are held back come after their time, and no others do.
        let held = (count - dropped) as f64 * held_back;
        assert!((figures.late as f64 - held).abs() <= 4.0 * held.sqrt() + count as f64 * 1e-4, "{figures:?} {held}");
        let onsets = take.onsets_ms();
        assert!(onsets.len().abs_diff(1167) <= 4, "{}", onsets.len());
    }
}
