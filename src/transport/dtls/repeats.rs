//! Handshake messages that came before.
//!
//! The library stops its timer when a message comes, and does not start it again when that message was an old one: both
//! sides would then wait for each other. Datagrams that hold nothing else are kept from it, and its own timer goes on.

/// Bytes of the head of a record: type, version, epoch, number, length (RFC 6347 4.1).
const RECORD_HEAD: usize = 13;

/// Bytes of the head of a message: type, length, number, place and length of the piece (RFC 6347 4.2.2).
const MESSAGE_HEAD: usize = 12;

/// Record type of handshake messages.
const HANDSHAKE: u8 = 22;

/// Message type of a ClientHello.
const CLIENT_HELLO: u8 = 1;

/// Pieces of messages that are remembered; a handshake has a tenth of it.
const MOST: usize = 256;

/// Pieces of handshake messages, by their heads.
#[derive(Debug, Default)]
pub(super) struct Repeats(Vec<[u8; MESSAGE_HEAD]>);

impl Repeats {
    /// True when all that the datagram holds is known to have come. What is not, is known from now on.
    pub(super) fn are_all(&mut self, datagram: &[u8]) -> bool {
        let mut rest = datagram;
        let mut is_old = !datagram.is_empty();
        while let Some((head, behind)) = rest.split_first_chunk::<RECORD_HEAD>() {
            let length = usize::from(u16::from_be_bytes([head[11], head[12]]));
            let Some((body, next)) = behind.split_at_checked(length) else { return false };
            // Encrypted records cannot be judged.
            let is_open = head[0] == HANDSHAKE && head[3..5] == [0, 0];
            is_old &= is_open && self.knows(body);
            rest = next;
        }
        is_old && rest.is_empty()
    }

    fn knows(&mut self, messages: &[u8]) -> bool {
        let (mut rest, mut is_old) = (messages, true);
        while let Some((head, behind)) = rest.split_first_chunk::<MESSAGE_HEAD>() {
            let length = u32::from_be_bytes([0, head[9], head[10], head[11]]) as usize;
            let Some((_, next)) = behind.split_at_checked(length) else { return false };
            // The first one is answered as often as it comes: its answer is not sent again by itself.
            let is_first = head[0] == CLIENT_HELLO && head[4..6] == [0, 0];
            is_old &= self.0.contains(head) && !is_first;
            if self.0.len() < MOST && !self.0.contains(head) {
                self.0.push(*head);
            }
            rest = next;
        }
        is_old && rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record of this type and epoch with these messages: type, number, bytes.
    fn record(kind: u8, epoch: u8, messages: &[(u8, u8, u8)]) -> Vec<u8> {
        let body: Vec<u8> = messages
            .iter()
            .flat_map(|(kind, number, length)| {
                let head = [*kind, 0, 0, *length, 0, *number, 0, 0, 0, 0, 0, *length];
                head.into_iter().chain(std::iter::repeat_n(7, usize::from(*length)))
            })
            .collect();
        let head = [kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 9, 0, body.len() as u8];
        [&head[..], &body].concat()
    }

    #[test]
    fn what_came_before_is_told_apart() {
        let mut repeats = Repeats::default();
        let mut check = |datagram: &[u8], expect: bool| assert_eq!(repeats.are_all(datagram), expect, "{datagram:?}");
        let first = record(22, 0, &[(1, 0, 40)]);
        let flight = [record(22, 0, &[(2, 1, 30), (11, 2, 50)]), record(22, 0, &[(14, 3, 0)])].concat();
        check(&first, false);
        check(&first, false);
        check(&flight, false);
        check(&flight, true);
        check(&record(22, 0, &[(14, 3, 0)]), true);
        check(&record(22, 0, &[(1, 1, 60)]), false);
        check(&record(22, 0, &[(1, 1, 60)]), true);
        // Something new, something encrypted, another kind of record, a piece of one.
        check(&[flight.clone(), record(22, 0, &[(16, 4, 9)])].concat(), false);
        check(&[flight.clone(), record(22, 1, &[(20, 5, 9)])].concat(), false);
        check(&[flight.clone(), record(22, 1, &[(20, 5, 9)])].concat(), false);
        check(&record(20, 0, &[(14, 3, 0)]), false);
        check(&flight[..flight.len() - 1], false);
        check(&[], false);
    }
}
