//! Decompresses bzip2, which the format of the ACP registry has among its archives.
//!
//! Written here because a library costs more than these lines: in the binary, which has little room, and in the first
//! build. Invariants: memory is bounded by the format, about 4.5 MB; every block and stream is compared with its
//! checksum; no input makes it panic. Not here: blocks that were randomised, as versions before 0.9.5 of 1999 wrote them.

use std::io::{self, ErrorKind, Read};

/// What a stream begins with; a digit follows, the size of its blocks in 100,000 bytes.
const STREAM: [u8; 3] = *b"BZh";
/// What a block begins with: the digits of pi.
const BLOCK: u64 = 0x3141_5926_5359;
/// What stands behind the last block: those of its square root.
const END: u64 = 0x1772_4538_5090;
/// Symbols that are written with one table.
const GROUP: usize = 50;
/// The longest code, in bits.
const LONGEST: usize = 20;
/// The longest run that two symbols may spell.
const LONGEST_RUN: usize = 1 << 21;
/// Equal bytes behind which a count stands.
const RUN: u8 = 4;

/// A reader of what a bzip2 file has; streams that follow one another are one, as tools write them that use several
/// processors.
pub(super) struct BzDecoder<R> {
    bits: Bits<R>,
    /// Bytes of a block; 0 outside of a stream.
    block_size: usize,
    /// Of the blocks of the stream so far.
    stream_sum: u32,
    block: Block,
}

/// The block that is being given out.
#[derive(Default)]
struct Block {
    /// In the low byte of each what stands there, above it where the next one is.
    chain: Vec<u32>,
    at: u32,
    /// Those of the chain that are still to come.
    left: usize,
    last: Option<u8>,
    /// How often the last one came, up to [`RUN`].
    count: u8,
    /// How often it comes once more.
    repeats: u8,
    sum: u32,
    /// What the sum is to be.
    expected: u32,
}

impl<R: Read> BzDecoder<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            bits: Bits { input, held: 0, count: 0 },
            block_size: 0,
            stream_sum: 0,
            block: Block::default(),
        }
    }

    /// Reads on to the next block; false at the end of the file.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            if self.block_size == 0 && !self.begin_stream()? {
                return Ok(false);
            }
            let magic = u64::from(self.bits.take(24)?) << 24 | u64::from(self.bits.take(24)?);
            let expected = self.bits.take(16)? << 16 | self.bits.take(16)?;
            match magic {
                BLOCK => {
                    self.stream_sum = self.stream_sum.rotate_left(1) ^ expected;
                    self.block = read_block(&mut self.bits, self.block_size, expected)?;
                    return Ok(true);
                }
                END if expected != self.stream_sum => {
                    return Err(damaged("the checksum of a stream is another"));
                }
                END => self.block_size = 0,
                _ => return Err(damaged("there is neither a block nor an end")),
            }
        }
    }

    /// False at the end of the file.
    fn begin_stream(&mut self) -> io::Result<bool> {
        // Streams begin at whole bytes.
        self.bits.count -= self.bits.count % 8;
        let Some(first) = self.bits.take_byte()? else { return Ok(false) };
        let head = [first, self.byte()?, self.byte()?];
        let level = self.byte()?;
        if head != STREAM || !(b'1'..=b'9').contains(&level) {
            return Err(damaged("there is something else behind the end of a stream"));
        }
        self.block_size = usize::from(level - b'0') * 100_000;
        self.stream_sum = 0;
        Ok(true)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.bits.take(8)?.to_le_bytes()[0])
    }
}

impl<R: Read> Read for BzDecoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let given = self.block.give(out);
            if self.block.is_over() && self.block.sum != self.block.expected {
                return Err(damaged("the checksum of a block is another"));
            }
            if given > 0 {
                return Ok(given);
            }
            if !self.next_block()? {
                return Ok(0);
            }
        }
    }
}

impl Block {
    fn is_over(&self) -> bool {
        self.left == 0 && self.repeats == 0
    }

    /// Gives out what fits; 0 at the end of the block.
    fn give(&mut self, out: &mut [u8]) -> usize {
        let mut given = 0;
        while given < out.len() {
            let byte = if self.repeats > 0 {
                self.repeats -= 1;
                self.last.unwrap_or_default()
            } else {
                let Some(byte) = self.next() else { break };
                if self.count == RUN {
                    (self.repeats, self.count) = (byte, 0);
                    // It counts on from here, also where the same byte comes again.
                    if byte == 0 {
                        continue;
                    }
                    self.repeats -= 1;
                    self.last.unwrap_or_default()
                } else {
                    self.count = if self.last == Some(byte) && self.count > 0 { self.count + 1 } else { 1 };
                    self.last = Some(byte);
                    byte
                }
            };
            out[given] = byte;
            given += 1;
            self.sum = sum_with(self.sum, byte);
        }
        // The sum is the complement at its end.
        given
    }

    fn next(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        let entry = *self.chain.get(usize::try_from(self.at).ok()?)?;
        self.at = entry >> 8;
        Some(entry.to_le_bytes()[0])
    }
}

/// Reads a block, and undoes its sorting.
fn read_block<R: Read>(bits: &mut Bits<R>, size: usize, expected: u32) -> io::Result<Block> {
    if bits.take(1)? == 1 {
        return Err(damaged("its blocks are randomised, as no bzip2 has written them since 1999"));
    }
    let origin = bits.take(24)?;
    let mut chain = read_symbols(bits, size)?;
    // Where those of each byte begin, in the order of the bytes.
    let mut places = [0_u32; 256];
    for entry in &chain {
        places[usize::from(entry.to_le_bytes()[0])] += 1;
    }
    let mut sum = 0;
    for place in &mut places {
        (*place, sum) = (sum, sum + *place);
    }
    for at in 0..chain.len() {
        let place = &mut places[usize::from(chain[at].to_le_bytes()[0])];
        chain[usize::try_from(*place).unwrap_or(usize::MAX)] |= u32::try_from(at).unwrap_or_default() << 8;
        *place += 1;
    }
    let first = usize::try_from(origin).ok().and_then(|origin| chain.get(origin));
    let at = first.ok_or_else(|| damaged("a block begins behind its end"))? >> 8;
    let left = chain.len();
    Ok(Block { chain, at, left, sum: u32::MAX, expected: !expected, ..Block::default() })
}

/// The bytes of a block as they were sorted.
fn read_symbols<R: Read>(bits: &mut Bits<R>, size: usize) -> io::Result<Vec<u32>> {
    let mut used = read_used(bits)?;
    let tables = bits.take(3)?;
    let count = bits.take(15)?;
    if !(2..=6).contains(&tables) || count == 0 {
        return Err(damaged("the tables of a block are not understood"));
    }
    let mut order: Vec<u8> = (0..tables.to_le_bytes()[0]).collect();
    let mut selectors = Vec::new();
    for _ in 0..count {
        let mut at = 0;
        while bits.take(1)? == 1 {
            at += 1;
            if at >= order.len() {
                return Err(damaged("a block names a table that is not there"));
            }
        }
        order[..=at].rotate_right(1);
        selectors.push(order[0]);
    }
    let end = used.len() + 1;
    let tables = (0..tables).map(|_| Table::read(bits, end + 1)).collect::<io::Result<Vec<_>>>()?;
    let mut symbols = Vec::with_capacity(size);
    let (mut run, mut weight) = (0_usize, 1_usize);
    for selector in selectors {
        for _ in 0..GROUP {
            let symbol = tables[usize::from(selector)].symbol(bits)?;
            if symbol <= 1 {
                // Digits of a number that counts from 1, the low ones first.
                run += weight << symbol;
                weight <<= 1;
                if run > LONGEST_RUN {
                    return Err(damaged("a run in a block is too long"));
                }
                continue;
            }
            if run > 0 {
                if symbols.len() + run > size {
                    return Err(damaged("a block is longer than it may be"));
                }
                symbols.resize(symbols.len() + run, u32::from(used[0]));
                (run, weight) = (0, 1);
            }
            if symbol == end {
                return Ok(symbols);
            }
            if symbols.len() == size {
                return Err(damaged("a block is longer than it may be"));
            }
            used[..symbol].rotate_right(1);
            symbols.push(u32::from(used[0]));
        }
    }
    Err(damaged("a block has no end"))
}

/// The bytes that there are in a block, in order.
fn read_used<R: Read>(bits: &mut Bits<R>) -> io::Result<Vec<u8>> {
    let rows = bits.take(16)?;
    let mut used = Vec::new();
    for row in 0..16_u8 {
        if rows >> (15 - row) & 1 == 0 {
            continue;
        }
        let columns = bits.take(16)?;
        used.extend(
            (0..16_u8).filter(|column| columns >> (15 - column) & 1 == 1).map(|column| row * 16 + column),
        );
    }
    if used.is_empty() { Err(damaged("a block has no bytes")) } else { Ok(used) }
}

/// A canonical prefix code.
struct Table {
    /// Of each length the first code behind the last one, and what is taken off a code for its place.
    lengths: [(i64, i64); LONGEST + 1],
    /// In the order of their codes.
    symbols: Vec<usize>,
}

impl Table {
    fn read<R: Read>(bits: &mut Bits<R>, symbols: usize) -> io::Result<Self> {
        let mut length = usize::try_from(bits.take(5)?).unwrap_or_default();
        let mut lengths = Vec::with_capacity(symbols);
        for _ in 0..symbols {
            loop {
                if !(1..=LONGEST).contains(&length) {
                    return Err(damaged("a code in a block is too long"));
                }
                if bits.take(1)? == 0 {
                    break;
                }
                length = if bits.take(1)? == 0 { length + 1 } else { length - 1 };
            }
            lengths.push(length);
        }
        let mut table = Self { lengths: [(0, 0); LONGEST + 1], symbols: Vec::with_capacity(symbols) };
        let mut code = 0_i64;
        for length in 1..=LONGEST {
            let before = i64::try_from(table.symbols.len()).unwrap_or_default();
            table.symbols.extend((0..symbols).filter(|symbol| lengths[*symbol] == length));
            let own = i64::try_from(table.symbols.len()).unwrap_or_default() - before;
            table.lengths[length] = (code + own, code - before);
            code = (code + own) << 1;
        }
        Ok(table)
    }

    fn symbol<R: Read>(&self, bits: &mut Bits<R>) -> io::Result<usize> {
        let mut code = 0;
        for (above, base) in &self.lengths[1..] {
            code = code << 1 | i64::from(bits.take(1)?);
            if code < *above {
                let symbol = usize::try_from(code - base).ok().and_then(|at| self.symbols.get(at));
                return symbol.copied().ok_or_else(|| damaged("a block has a code without a symbol"));
            }
        }
        Err(damaged("a block has a code without a symbol"))
    }
}

/// Bits, the highest of a byte first.
struct Bits<R> {
    input: R,
    /// In the low bits.
    held: u64,
    count: u32,
}

impl<R: Read> Bits<R> {
    /// The next bits, at most 24.
    fn take(&mut self, count: u32) -> io::Result<u32> {
        while self.count < count {
            let byte =
                self.read()?.ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "it is cut off"))?;
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
        }
        self.count -= count;
        let taken = self.held >> self.count & ((1 << count) - 1);
        Ok(u32::try_from(taken).unwrap_or_default())
    }

    /// The next whole byte; none at the end.
    fn take_byte(&mut self) -> io::Result<Option<u8>> {
        match self.count {
            0 => self.read(),
            _ => Ok(Some(self.take(8)?.to_le_bytes()[0])),
        }
    }

    fn read(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(byte[0])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The checksum with one more byte: a CRC-32 of which the highest bit is the first.
fn sum_with(sum: u32, byte: u8) -> u32 {
    sum << 8 ^ SUMS[usize::from((sum >> 24).to_le_bytes()[0] ^ byte)]
}

const SUMS: [u32; 256] = {
    let mut sums = [0; 256];
    let mut at = 0;
    while at < sums.len() {
        let mut sum = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum >> 31 == 1 { sum << 1 ^ 0x04c1_1db7 } else { sum << 1 };
            bit += 1;
        }
        sums[at] = sum;
        at += 1;
    }
    sums
};

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests;
