//! Where bytes come from: plain, gzip or zstd, by what they begin with.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// What `source` holds, decompressed.
pub(crate) fn plain<'r>(mut source: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut magic = [0; 4];
    let mut length = 0;
    while length < magic.len() {
        match source.read(&mut magic[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let whole = Cursor::new(magic).take(length as u64).chain(source);
    Ok(match magic[..length] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(Frames {
            source: BufReader::new(whole),
            decoder: FrameDecoder::new(),
            within: false,
        }),
        _ => Box::new(whole),
    })
}

/// One frame of zstd after the other, as tools that write in parallel leave them.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    within: bool,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.within && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
                continue;
            }
            self.within = false;
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

impl<R: BufRead> Frames<R> {
    /// False at the end of the source. Frames without data are passed over.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.within = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut data = self.source.by_ref().take(u64::from(length));
                    io::copy(&mut data, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}
