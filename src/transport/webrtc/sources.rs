//! Sources in packets. The call's leg has drawn a source of its own (RFC 3550 8.1). On the wire the source is the one
//! of the session description, so it is exchanged in both directions.

/// Bytes of a report block (RFC 3550 6.4.1).
const BLOCK: usize = 24;

/// Writes `source` into an RTP packet. Returns the one that was there.
pub(super) fn exchange_source(rtp: &mut [u8], source: [u8; 4]) -> Option<[u8; 4]> {
    let field = rtp.get_mut(8..12)?.first_chunk_mut::<4>()?;
    Some(std::mem::replace(field, source))
}

/// Writes `source` as the sender of each report of a compound packet.
pub(super) fn exchange_reporters(rtcp: &mut [u8], source: [u8; 4]) {
    for_each_report(rtcp, |report| {
        if let Some(field) = report.get_mut(4..8) {
            field.copy_from_slice(&source);
        }
    });
}

/// Makes `to` of the source `from` in the report blocks of a compound packet.
pub(super) fn exchange_reported(rtcp: &mut [u8], from: [u8; 4], to: [u8; 4]) {
    for_each_report(rtcp, |report| {
        let blocks_at = match report[1] {
            // Sender reports and receiver reports (RFC 3550 6.4).
            200 => 28,
            201 => 8,
            _ => return,
        };
        let count = usize::from(report[0] & 0x1f);
        let blocks = report.get_mut(blocks_at..).unwrap_or_default().chunks_exact_mut(BLOCK).take(count);
        blocks.filter(|block| block[..4] == from).for_each(|block| block[..4].copy_from_slice(&to));
    });
}

/// Calls `each` with every report of a compound packet (RFC 3550 6.1).
fn for_each_report(mut rtcp: &mut [u8], mut each: impl FnMut(&mut [u8])) {
    while rtcp.len() >= 4 {
        let len = (usize::from(u16::from_be_bytes([rtcp[2], rtcp[3]])) + 1) * 4;
        let Some((report, rest)) = std::mem::take(&mut rtcp).split_at_mut_checked(len) else { return };
        each(report);
        rtcp = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sender report with one block, and a source description behind it.
    fn compound(sender: u8, reported: u8) -> Vec<u8> {
        let mut bytes = vec![0x81, 200, 0, 12];
        bytes.extend([sender; 4]);
        bytes.extend([0; 20]);
        bytes.extend([reported; 4]);
        bytes.extend([0; 20]);
        bytes.extend([0x81, 202, 0, 2]);
        bytes.extend([sender; 4]);
        bytes.extend([1, 1, b'x', 0]);
        bytes
    }

    #[test]
    fn the_source_on_the_wire_is_the_described_one() {
        let mut rtp = vec![0x80; 20];
        assert_eq!(exchange_source(&mut rtp, [9; 4]), Some([0x80; 4]));
        assert_eq!(rtp[8..12], [9; 4]);
        assert_eq!(exchange_source(&mut rtp[..11], [9; 4]), None);
        let mut sent = compound(1, 2);
        exchange_reporters(&mut sent, [7; 4]);
        assert_eq!(sent, compound(7, 2));
        let mut came = compound(1, 7);
        exchange_reported(&mut came, [7; 4], [3; 4]);
        assert_eq!(came, compound(1, 3));
        exchange_reported(&mut came, [7; 4], [3; 4]);
        assert_eq!(came, compound(1, 3), "a block about another source stays");
    }

    #[test]
    fn broken_reports_end_at_their_end() {
        for len in 0..compound(1, 7).len() {
            let mut cut = compound(1, 7)[..len].to_vec();
            exchange_reported(&mut cut, [7; 4], [3; 4]);
            exchange_reporters(&mut cut, [5; 4]);
        }
        let mut lying = vec![0x9f, 201, 0, 1, 1, 1, 1, 1];
        exchange_reported(&mut lying, [7; 4], [3; 4]);
        assert_eq!(lying, [0x9f, 201, 0, 1, 1, 1, 1, 1]);
    }
}
