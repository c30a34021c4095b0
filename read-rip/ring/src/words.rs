//! The words of a slot, in the order of their sequences. Words that are missing take no memory where many are.
//!
//! A slot can claim 128 KiB of words of which the file has one page: the rest is a hole. It does not interpret words.

use super::Word;

/// Words are kept in pieces of this many. A piece without a known word takes no memory.
const PIECE: usize = 512;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    len: usize,
    /// The first piece. Most slots have no other.
    first: Box<[Word]>,
    /// The other pieces. The last one may be shorter than the others. A piece without a known word is empty.
    others: Vec<Box<[Word]>>,
}

impl Words {
    /// This many words, none of which is known.
    pub fn missing(len: usize) -> Words {
        Words {
            len,
            first: Box::default(),
            others: vec![Box::default(); len.div_ceil(PIECE).saturating_sub(1)],
        }
    }

    /// This many words, each as the function says, which is called for one index after the other.
    pub fn from_fn(len: usize, mut word: impl FnMut(usize) -> Word) -> Words {
        let mut piece = |begin: usize| -> Box<[Word]> {
            let mut is_known = false;
            let words = (begin..len.min(begin + PIECE)).map(|index| {
                let word = word(index);
                is_known |= !word.is_missing();
                word
            });
            let words: Box<[Word]> = words.collect();
            if is_known { words } else { Box::default() }
        };
        let first = piece(0);
        Words { len, first, others: (PIECE..len).step_by(PIECE).map(piece).collect() }
    }

    /// The number of words, known or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A word; `None` if there is none with this index.
    pub fn get(&self, index: usize) -> Option<Word> {
        let piece = match index / PIECE {
            0 => Some(&self.first),
            at => self.others.get(at - 1),
        };
        let known = piece.and_then(|piece| piece.get(index % PIECE));
        (index < self.len).then(|| known.copied().unwrap_or(Word::MISSING))
    }

    /// Sets a word. An index without a word is ignored.
    pub fn set(&mut self, index: usize, word: Word) {
        if index >= self.len || word.is_missing() {
            return;
        }
        let piece = match index / PIECE {
            0 => &mut self.first,
            at => &mut self.others[at - 1],
        };
        if piece.is_empty() {
            let len = (self.len - index / PIECE * PIECE).min(PIECE);
            *piece = vec![Word::MISSING; len].into_boxed_slice();
        }
        piece[index % PIECE] = word;
    }

    /// All words with their indices, in order, except in pieces without a known word.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Word)> {
        let pieces = std::iter::once(&self.first).chain(&self.others).enumerate();
        pieces.flat_map(|(at, piece)| {
            piece.iter().copied().enumerate().map(move |(i, word)| (at * PIECE + i, word))
        })
    }

    /// The number of known words.
    pub fn known(&self) -> usize {
        self.iter().filter(|(_, word)| !word.is_missing()).count()
    }
}

impl FromIterator<Word> for Words {
    fn from_iter<I: IntoIterator<Item = Word>>(words: I) -> Words {
        let all: Vec<Word> = words.into_iter().collect();
        Words::from_fn(all.len(), |index| all[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_and_holes_take_no_memory() {
        let known = [0, 1, 511, 512, 5000, 16_000];
        let mut words = Words::missing(16_001);
        known.iter().for_each(|&at| words.set(at, Word::pc(at as u64, 0x1000)));
        words.set(16_001, Word::pc(0, 1));
        for at in 0..16_001 {
            let word = words.get(at).unwrap();
            assert_eq!(!word.is_missing(), known.contains(&at), "{at}");
        }
        assert_eq!(words.get(16_001), None);
        assert_eq!((words.len(), words.known()), (16_001, known.len()));
        assert_eq!(1 + words.others.iter().filter(|piece| !piece.is_empty()).count(), 4);
        let listed: Vec<usize> =
            words.iter().filter(|(_, word)| !word.is_missing()).map(|(at, _)| at).collect();
        assert_eq!(listed, known);
        assert_eq!((0..16_001).filter_map(|at| words.get(at)).collect::<Words>(), words);
    }
}
