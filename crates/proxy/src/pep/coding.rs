//! Content codings between the two sides, and those of origins where the ground side reads along.

use super::exchange::AnswerHead;
use async_compression::Level;
use async_compression::tokio::write::{
    BrotliDecoder, BrotliEncoder, GzipDecoder, GzipEncoder, ZlibDecoder, ZstdDecoder, ZstdEncoder,
};
use http::StatusCode;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use wirepaint_pep_model::is_text;
use wirepaint_run::Compression;

/// Level of each coding: what web servers use for answers that they make on the way.
const GZIP_LEVEL: i32 = 6;
const BROTLI_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 3;
/// Bytes that a decoder is given at once.
const STEP: usize = 512;

/// Bytes that came out of a coder. It refuses more than its limit.
pub struct Sink {
    bytes: Vec<u8>,
    limit: usize,
}

impl AsyncWrite for Sink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Poll::Ready(Err(io::Error::other("more bytes than are accepted")));
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Compresses a body as it comes. Nothing that was put in stays in: the receiver can undo what it has. (brotli's
/// decoder may keep bytes behind the first 64 KiB until the next ones come.)
pub enum Encoder {
    None,
    Gzip(Box<GzipEncoder<Sink>>),
    Br(Box<BrotliEncoder<Sink>>),
    Zstd(Box<ZstdEncoder<Sink>>),
}

impl Encoder {
    pub fn new(coding: Compression) -> Encoder {
        let sink = Sink { bytes: Vec::new(), limit: usize::MAX };
        match coding {
            Compression::None => Encoder::None,
            Compression::Gzip => {
                Encoder::Gzip(Box::new(GzipEncoder::with_quality(sink, Level::Precise(GZIP_LEVEL))))
            }
            Compression::Br => {
                Encoder::Br(Box::new(BrotliEncoder::with_quality(sink, Level::Precise(BROTLI_LEVEL))))
            }
            Compression::Zstd => {
                Encoder::Zstd(Box::new(ZstdEncoder::with_quality(sink, Level::Precise(ZSTD_LEVEL))))
            }
        }
    }

    /// The bytes to send for these.
    pub async fn encode(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let sink = match self {
            Encoder::None => return Ok(bytes.to_vec()),
            Encoder::Gzip(coder) => through(coder, bytes).await.map(|()| coder.get_mut())?,
            Encoder::Br(coder) => through(coder, bytes).await.map(|()| coder.get_mut())?,
            Encoder::Zstd(coder) => through(coder, bytes).await.map(|()| coder.get_mut())?,
        };
        Ok(std::mem::take(&mut sink.bytes))
    }

    /// The bytes to send at the end.
    pub async fn finish(&mut self) -> io::Result<Vec<u8>> {
        let sink = match self {
            Encoder::None => return Ok(Vec::new()),
            Encoder::Gzip(coder) => coder.shutdown().await.map(|()| coder.get_mut())?,
            Encoder::Br(coder) => coder.shutdown().await.map(|()| coder.get_mut())?,
            Encoder::Zstd(coder) => coder.shutdown().await.map(|()| coder.get_mut())?,
        };
        Ok(std::mem::take(&mut sink.bytes))
    }
}

async fn through(coder: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    coder.write_all(bytes).await?;
    coder.flush().await
}

/// Undoes a coding as the bytes come.
pub enum Decoder {
    None,
    Gzip(Box<GzipDecoder<Sink>>),
    Zlib(Box<ZlibDecoder<Sink>>),
    Br(Box<BrotliDecoder<Sink>>),
    Zstd(Box<ZstdDecoder<Sink>>),
}

impl Decoder {
    /// Undoes what the other side did. [`STEP`] bytes become at most `limit`; more is an error.
    pub fn new(coding: Compression, limit: usize) -> Decoder {
        let sink = Sink { bytes: Vec::new(), limit };
        match coding {
            Compression::None => Decoder::None,
            Compression::Gzip => Decoder::Gzip(Box::new(GzipDecoder::new(sink))),
            Compression::Br => Decoder::Br(Box::new(BrotliDecoder::new(sink))),
            Compression::Zstd => Decoder::Zstd(Box::new(ZstdDecoder::new(sink))),
        }
    }

    /// Undoes an origin's `content-encoding`; `None` for one that is not known.
    pub fn of_origin(name: Option<&str>, limit: usize) -> Option<Decoder> {
        let sink = Sink { bytes: Vec::new(), limit };
        Some(match name.map(|name| name.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Decoder::None,
            Some("gzip" | "x-gzip") => Decoder::Gzip(Box::new(GzipDecoder::new(sink))),
            Some("deflate") => Decoder::Zlib(Box::new(ZlibDecoder::new(sink))),
            Some("br") => Decoder::Br(Box::new(BrotliDecoder::new(sink))),
            Some("zstd") => Decoder::Zstd(Box::new(ZstdDecoder::new(sink))),
            Some(_) => return None,
        })
    }

    /// The plain bytes of the next [`STEP`] bytes of `coded`, which are taken from it.
    pub async fn step(&mut self, coded: &mut bytes::Bytes) -> io::Result<Vec<u8>> {
        let step = coded.split_to(coded.len().min(STEP));
        let sink = match self {
            Decoder::None => return Ok(step.to_vec()),
            Decoder::Gzip(coder) => through(coder, &step).await.map(|()| coder.get_mut())?,
            Decoder::Zlib(coder) => through(coder, &step).await.map(|()| coder.get_mut())?,
            Decoder::Br(coder) => through(coder, &step).await.map(|()| coder.get_mut())?,
            Decoder::Zstd(coder) => through(coder, &step).await.map(|()| coder.get_mut())?,
        };
        Ok(std::mem::take(&mut sink.bytes))
    }
}

/// True for an answer that is worth compressing: its origin did not, and its type is text.
pub fn is_compressible(head: &AnswerHead) -> bool {
    let plain = head.field("content-encoding").is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
    plain && head.status != StatusCode::PARTIAL_CONTENT && is_text(head.field("content-type").unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_coding_is_undone_while_it_goes_on() {
        let text = "some text that repeats, some text that repeats. ".repeat(2000).into_bytes();
        for coding in [Compression::None, Compression::Gzip, Compression::Br, Compression::Zstd] {
            let (mut encoder, mut decoder) = (Encoder::new(coding), Decoder::new(coding, 1 << 20));
            let (mut plain, mut coded_bytes) = (Vec::new(), 0);
            for part in text.chunks(30_000) {
                let mut coded = bytes::Bytes::from(encoder.encode(part).await.unwrap());
                coded_bytes += coded.len();
                while !coded.is_empty() {
                    plain.extend(decoder.step(&mut coded).await.unwrap());
                }
            }
            // brotli's decoder may keep what lies behind the first 64 KiB until more comes.
            let kept = text.len() - plain.len();
            assert!(kept <= if coding == Compression::Br { 65_536 } else { 0 }, "{coding:?}: {kept}");
            let mut end = bytes::Bytes::from(encoder.finish().await.unwrap());
            while !end.is_empty() {
                plain.extend(decoder.step(&mut end).await.unwrap());
            }
            assert!(plain == text);
            assert!(
                coding == Compression::None || coded_bytes < text.len() / 20,
                "{coding:?}: {coded_bytes}"
            );
        }
    }

    #[tokio::test]
    async fn a_bomb_is_refused() {
        let mut encoder = Encoder::new(Compression::Br);
        let mut bomb = bytes::Bytes::from(encoder.encode(&vec![0; 64 << 20]).await.unwrap());
        let mut decoder = Decoder::of_origin(Some("br"), 1 << 20).unwrap();
        let refused = loop {
            if let Err(error) = decoder.step(&mut bomb).await {
                break error;
            }
            assert!(!bomb.is_empty());
        };
        assert_eq!(refused.to_string(), "more bytes than are accepted");
    }
}
