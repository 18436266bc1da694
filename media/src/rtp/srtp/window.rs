//! Packets of one source that came: extended numbers and the replay window.

/// Replay window: the last 64 numbers of a source (RFC 3711 3.3.2).
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Window {
    highest: u64,
    /// Bit n is 1 when `highest - n` came. Zero: no packet came.
    seen: u64,
}

impl Window {
    /// Returns the most likely index of the packet, from rollover counter and sequence number (RFC 3711 3.3.1, appendix
    /// A). `None` before the first index or after the last.
    pub(super) fn index_of(&self, sequence: u16) -> Option<u64> {
        if self.seen == 0 {
            return Some(sequence.into());
        }
        let (rollovers, last) = ((self.highest >> 16) as u32, i32::from(self.highest as u16));
        let number = i32::from(sequence);
        let rollovers = if last < 0x8000 {
            if number - last > 0x8000 { rollovers.checked_sub(1)? } else { rollovers }
        } else if last - 0x8000 > number {
            rollovers.checked_add(1)?
        } else {
            rollovers
        };
        Some(u64::from(rollovers) << 16 | u64::from(sequence))
    }

    /// True when the packet of this index did not come, as far as is known, and is not too old to know.
    pub(super) fn is_new(&self, index: u64) -> bool {
        match self.highest.checked_sub(index) {
            None => true,
            Some(back) => self.seen == 0 || back < 64 && self.seen & 1 << back == 0,
        }
    }

    /// Records the packet of this index, which is new and was authentic.
    pub(super) fn accept(&mut self, index: u64) {
        match index.checked_sub(self.highest) {
            Some(step) => {
                self.seen = u32::try_from(step).ok().and_then(|step| self.seen.checked_shl(step)).unwrap_or(0) | 1;
                self.highest = index;
            }
            None => self.seen |= 1 << (self.highest - index),
        }
    }
}
