//! The last stretch of a channel, by position.

use crate::frame::Sample;

/// The newest `N` samples of a channel, each at its position on the call's clock. Samples that were never written are
/// silence.
#[derive(Clone, Debug)]
pub(super) struct Ring<const N: usize> {
    pcm: Box<[i16]>,
    /// One past the last sample.
    end: Sample,
}

impl<const N: usize> Ring<N> {
    /// Returns a ring of silence.
    pub(super) fn new() -> Ring<N> {
        Ring { pcm: vec![0; N].into(), end: 0 }
    }

    /// Writes `pcm` (at most `N`) at `from` and replaces samples there. A gap before it becomes silence; after a jump
    /// back nothing later is left.
    pub(super) fn write(&mut self, from: Sample, pcm: &[i16]) {
        let gap = (from - self.end).clamp(0, N as Sample);
        for at in from - gap..from {
            self.pcm[Self::place(at)] = 0;
        }
        let (head, tail) = pcm.split_at(pcm.len().min(N - Self::place(from)));
        self.pcm[Self::place(from)..][..head.len()].copy_from_slice(head);
        self.pcm[..tail.len()].copy_from_slice(tail);
        self.end = from + pcm.len() as Sample;
    }

    /// Reads the samples from `from` on; silence where none are held.
    pub(super) fn copy_to(&self, from: Sample, out: &mut [f32]) {
        let count = out.len() as Sample;
        let first = (self.end - N as Sample).clamp(from, from + count);
        let last = self.end.clamp(first, from + count);
        let (before, rest) = out.split_at_mut((first - from) as usize);
        let (held, after) = rest.split_at_mut((last - first) as usize);
        before.fill(0.0);
        after.fill(0.0);
        let place = Self::place(first);
        let (head, tail) = held.split_at_mut(held.len().min(N - place));
        head.iter_mut().zip(&self.pcm[place..]).for_each(|(out, &sample)| *out = sample.into());
        tail.iter_mut().zip(&self.pcm[..]).for_each(|(out, &sample)| *out = sample.into());
    }

    fn place(at: Sample) -> usize {
        at.rem_euclid(N as Sample) as usize
    }
}
