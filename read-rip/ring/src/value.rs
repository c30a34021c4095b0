//! The values of an event, decoded from its operand words. `librip_format::event` defines them.
//!
//! It formats nothing.

use librip_format::{BYTES_KEPT_BITS, BYTES_PER_WORD, SHAPE_LEFT_OUT, SHAPE_TIME, VALUES_MAX};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer without sign.
    Unsigned(u64),
    /// An integer with a sign, and how many bits its type has.
    Signed(i64, u32),
    /// A float of 32 bits.
    Float32(f32),
    /// A float of 64 bits.
    Float64(f64),
    Bool(bool),
    Char(char),
    Pointer(u64),
    /// The beginning of a text, and the length of the whole text, bytes.
    Bytes(Vec<u8>, u64),
    /// A text elsewhere: its address, its length in bytes, and whether it is the name of an enum's variant.
    Text {
        address: u64,
        /// Bytes.
        len: u64,
        /// Whether it is a name, which has no quotes.
        is_name: bool,
    },
}

/// How many operand words stand before a shape.
pub fn shape_words(shape: u64) -> usize {
    librip_format::shape_words(shape) as usize
}

/// What an event has besides its site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Its time, ticks.
    pub ticks: Option<u64>,
    /// Its values, in order.
    pub values: Vec<Value>,
    /// The values were not recorded, because they needed more words than the slot or an event has.
    pub is_left_out: bool,
}

impl Values {
    /// Decodes the operand words of an event, the shape last. `None` if they contradict one another.
    pub fn decode(operands: &[u64]) -> Option<Values> {
        let (&shape, mut words) = operands.split_last()?;
        if librip_format::shape_words(shape) != words.len() as u64 {
            return None;
        }
        let mut decoded = Values { is_left_out: shape & SHAPE_LEFT_OUT != 0, ..Values::default() };
        if shape & SHAPE_TIME != 0 {
            let (&ticks, rest) = words.split_first()?;
            (decoded.ticks, words) = ((ticks != 0).then_some(ticks), rest);
        }
        if !decoded.is_left_out {
            for index in 0..VALUES_MAX {
                let kind = librip_format::shape_type(shape, index);
                if kind == librip_format::VALUE_NONE {
                    break;
                }
                decoded.values.push(Value::take(kind, &mut words)?);
            }
        }
        words.is_empty().then_some(decoded)
    }
}

impl Value {
    /// Takes a value of this type from the front of some words. `None` if there are too few, or there is no such type.
    fn take(kind: u64, words: &mut &[u64]) -> Option<Value> {
        use librip_format as format;
        if kind == format::VALUE_BYTES {
            return Value::take_bytes(words);
        }
        let len = match kind {
            format::VALUE_U64
            | format::VALUE_I64
            | format::VALUE_F64
            | format::VALUE_POINTER
            | format::VALUE_TEXT
            | format::VALUE_NAME => 2,
            _ => 1,
        };
        let (own, rest) = words.split_at_checked(len)?;
        *words = rest;
        if let format::VALUE_TEXT | format::VALUE_NAME = kind {
            let is_name = kind == format::VALUE_NAME;
            return Some(Value::Text { address: own[0], len: own[1], is_name });
        }
        let bits = if len == 2 { own[0] & u64::from(u32::MAX) | own[1] << 32 } else { own[0] };
        Value::of_bits(kind, bits)
    }

    /// The value of a number's bits; `None` if there is no such type.
    fn of_bits(kind: u64, bits: u64) -> Option<Value> {
        use librip_format as format;
        Some(match kind {
            format::VALUE_UNSIGNED | format::VALUE_U64 => Value::Unsigned(bits),
            format::VALUE_I8 => Value::Signed(i64::from(bits as i8), 8),
            format::VALUE_I16 => Value::Signed(i64::from(bits as i16), 16),
            format::VALUE_I32 => Value::Signed(i64::from(bits as i32), 32),
            format::VALUE_I64 => Value::Signed(bits as i64, 64),
            format::VALUE_F32 => Value::Float32(f32::from_bits(bits as u32)),
            format::VALUE_F64 => Value::Float64(f64::from_bits(bits)),
            format::VALUE_BOOL => Value::Bool(bits != 0),
            format::VALUE_CHAR => Value::Char(char::from_u32(bits as u32)?),
            format::VALUE_POINTER => Value::Pointer(bits),
            _ => return None,
        })
    }

    fn take_bytes(words: &mut &[u64]) -> Option<Value> {
        let (&first, rest) = words.split_first()?;
        let kept = (first & ((1 << BYTES_KEPT_BITS) - 1)) as usize;
        let (own, rest) = rest.split_at_checked(kept.div_ceil(BYTES_PER_WORD))?;
        *words = rest;
        let bytes = own.iter().flat_map(|word| word.to_le_bytes().into_iter().take(BYTES_PER_WORD));
        let len = first >> BYTES_KEPT_BITS;
        (kept as u64 <= len).then(|| Value::Bytes(bytes.take(kept).collect(), len))
    }

    /// The value of which an entry of the table of open spans has this; `None` if there is none.
    pub(super) fn summary(kind: u64, bits: u64) -> Option<Value> {
        use librip_format as format;
        match kind {
            format::VALUE_BYTES => {
                let bytes: Vec<u8> = bits.to_le_bytes().into_iter().take_while(|&byte| byte != 0).collect();
                // Whether the text is longer is not known if all bytes are in use.
                let len = bytes.len() as u64 + u64::from(bytes.len() == size_of::<u64>());
                Some(Value::Bytes(bytes, len))
            }
            // The length is not there.
            format::VALUE_TEXT | format::VALUE_NAME => {
                Some(Value::Text { address: bits, len: 0, is_name: kind == format::VALUE_NAME })
            }
            _ => Value::of_bits(kind, bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use librip_format::{
        SHAPE_WORDS_SHIFT, VALUE_BYTES, VALUE_F64, VALUE_I16, VALUE_TEXT, VALUE_UNSIGNED, shape_types,
    };

    #[test]
    fn values_of_all_lengths_are_taken_in_order() {
        let types = shape_types(&[VALUE_UNSIGNED, VALUE_BYTES, VALUE_F64, VALUE_TEXT, VALUE_I16]);
        let bits = 1.5f64.to_bits();
        let text = u64::from_le_bytes(*b"abcdef\0\0");
        let words =
            [99, 7, 7 | 9 << 8, text, u64::from(b'g'), bits & 0xffff_ffff, bits >> 32, 0x5000, 3, 0xfffe];
        let shape = types | SHAPE_TIME | (words.len() as u64) << SHAPE_WORDS_SHIFT;
        let operands: Vec<u64> = words.into_iter().chain([shape]).collect();
        let decoded = Values::decode(&operands).unwrap();
        assert_eq!(decoded.ticks, Some(99));
        let wanted = [
            Value::Unsigned(7),
            Value::Bytes(b"abcdefg".to_vec(), 9),
            Value::Float64(1.5),
            Value::Text { address: 0x5000, len: 3, is_name: false },
            Value::Signed(-2, 16),
        ];
        assert_eq!(decoded.values, wanted);
    }

    #[test]
    fn words_that_contradict_the_shape_are_no_values() {
        let shape = |types: &[u64], words: u64| shape_types(types) | words << SHAPE_WORDS_SHIFT;
        assert_eq!(Values::decode(&[]), None);
        assert_eq!(Values::decode(&[shape(&[], 0)]), Some(Values::default()));
        assert_eq!(Values::decode(&[shape(&[], 1)]), None);
        assert_eq!(Values::decode(&[5, shape(&[], 1)]), None, "a word too many");
        assert_eq!(Values::decode(&[5, shape(&[VALUE_F64], 1)]), None, "a word too few");
        assert_eq!(Values::decode(&[5, shape(&[15], 1)]), None, "an unknown type");
        assert_eq!(Values::decode(&[7, shape(&[VALUE_BYTES], 1)]), None, "a text without its bytes");
        let left_out = Values { is_left_out: true, ..Values::default() };
        assert_eq!(Values::decode(&[shape(&[VALUE_F64], 0) | SHAPE_LEFT_OUT]), Some(left_out));
    }
}
