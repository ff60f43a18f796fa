//! Renders: the same bytes each time, a tail as long as it sounds, and limits.

use std::io::Cursor;

use ringback_studio::audio::{DecodeLimits, Samples, decode};
use ringback_studio::render::{
    AudioSink, FileFormat, FileSink, Progress, RenderError, RenderLimits, RenderSettings, Score,
    SinkError, WavFormat, WavSink, render,
};

use crate::support::{Memory, Midi, TICKS, font, rendered};

const Q: u64 = TICKS as u64;

fn wav(midi: &[u8], format: WavFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let mut sink = WavSink::new(&mut file, format, 2, 44_100).unwrap();
    let score = Score::read(midi).unwrap();
    let settings = RenderSettings::default();
    render(&score, font(), settings, RenderLimits::default(), &mut sink).unwrap();
    sink.finish().unwrap();
    file.into_inner()
}

fn tune() -> Vec<u8> {
    Midi::default().program(0, 0, 11).note(0, Q, 0, 60, 100).note(Q, Q, 0, 67, 90).bytes(2 * Q)
}

/// Rule: the same file, font and settings produce the same bytes.
#[test]
fn a_render_gives_the_same_bytes_each_time() {
    assert_eq!(wav(&tune(), WavFormat::Int16), wav(&tune(), WavFormat::Int16));
}

/// REQ: 16-bit, 24-bit and float WAV, of the same sound.
#[test]
fn the_three_formats_hold_the_same_sound() {
    let (float, _) = rendered(&tune(), RenderSettings::default());
    for (format, bits) in [(WavFormat::Int16, 16), (WavFormat::Int24, 24)] {
        let bytes = wav(&tune(), format);
        let mut reader = hound::WavReader::new(Cursor::new(bytes)).unwrap();
        let scale = 2_f32.powi(bits - 1);
        let samples: Vec<f32> =
            reader.samples::<i32>().map(|sample| sample.unwrap() as f32 / scale).collect();
        assert_eq!(samples.len(), float.len());
        let worst = samples.iter().zip(&float).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= 0.51 / scale, "{bits}: {worst}");
    }
    let mut reader = hound::WavReader::new(Cursor::new(wav(&tune(), WavFormat::Float32))).unwrap();
    assert_eq!(reader.samples::<f32>().map(Result::unwrap).collect::<Vec<_>>(), float);
}

/// REQ: FLAC loses nothing of what a WAV file of the same samples has, and is smaller.
#[test]
fn flac_holds_the_same_samples_as_wav() {
    for (flac, wav) in [
        (FileFormat::Flac16, FileFormat::Wav(WavFormat::Int16)),
        (FileFormat::Flac24, FileFormat::Wav(WavFormat::Int24)),
    ] {
        let [flac, wav] = [flac, wav].map(|format| {
            let mut file = Cursor::new(Vec::new());
            let mut sink = FileSink::new(&mut file, format, 2, 44_100).unwrap();
            let score = Score::read(&tune()).unwrap();
            let settings = RenderSettings::default();
            render(&score, font(), settings, RenderLimits::default(), &mut sink).unwrap();
            sink.finish().unwrap();
            file.into_inner()
        });
        assert!(flac.len() < wav.len() * 3 / 4, "{} and {}", flac.len(), wav.len());
        let heard = |file: Vec<u8>| {
            let mut samples = Vec::new();
            let limits = DecodeLimits::default();
            decode(Cursor::new(file), limits, &mut |piece: Samples<'_>| {
                samples.extend_from_slice(piece.interleaved);
                true
            })
            .unwrap();
            samples
        };
        assert_eq!(heard(flac), heard(wav));
    }
}

/// REQ: the tail ends by level: a long release has a long one, and silence none to speak of.
#[test]
fn the_tail_lasts_as_long_as_it_is_heard() {
    let with_tail = |program: u8| {
        let midi = Midi::default().program(0, 0, program).note(0, Q, 0, 72, 110).bytes(Q);
        let (samples, rendered) = rendered(&midi, RenderSettings::default());
        let end = &samples[samples.len() - 2000..];
        assert!(end.iter().all(|sample| sample.abs() < 1.0 / 32_768.0));
        rendered.tail_seconds
    };
    let (block, bells) = (with_tail(115), with_tail(14));
    assert!(bells > block + 0.2, "{bells} {block}");
    let (_, silence) = rendered(&Midi::default().bytes(Q), RenderSettings::default());
    assert!(silence.tail_seconds < 0.2, "{silence:?}");
}

/// Rule: a note that is never ended does not sound forever.
#[test]
fn a_note_without_an_end_is_let_go_at_the_end_of_the_file() {
    let mut midi = Midi::default();
    midi.program(0, 0, 16).note(0, 1000 * Q, 0, 60, 100);
    let mut score = Score::read(&midi.bytes(Q)).unwrap();
    score.messages.retain(|message| message.status != 0x80);
    score.seconds = 1.0;
    let mut memory = Memory::default();
    let (settings, limits) = (RenderSettings::default(), RenderLimits::default());
    let rendered = render(&score, font(), settings, limits, &mut memory).unwrap();
    assert!(rendered.seconds < 10.0, "{rendered:?}");
}

/// Rule: a small file never makes a huge render: it is refused before anything is rendered.
#[test]
fn a_small_file_that_plays_for_days_is_refused_at_once() {
    let midi = Midi::default().tempo(0, 5.0).note(0, Q, 0, 60, 100).bytes(200_000_000);
    assert!(midi.len() < 1024);
    let score = Score::read(&midi).unwrap();
    let mut memory = Memory::default();
    let error =
        render(&score, font(), RenderSettings::default(), RenderLimits::default(), &mut memory)
            .unwrap_err();
    assert!(matches!(error, RenderError::TooLong { .. }), "{error}");
    assert!(error.to_string().contains("3600"), "{error}");
    assert!(memory.0.is_empty());
}

#[test]
fn an_impossible_sample_rate_is_refused() {
    let score = Score::read(&tune()).unwrap();
    for sample_rate in [0, 1, 8000, 400_000, u32::MAX] {
        let settings = RenderSettings { sample_rate, ..RenderSettings::default() };
        let error =
            render(&score, font(), settings, RenderLimits::default(), &mut Memory::default());
        assert!(matches!(error, Err(RenderError::SampleRate { .. })), "{sample_rate}");
    }
}

/// Takes one piece and then stops.
struct OneShotSink(u32);

impl AudioSink for OneShotSink {
    fn take(&mut self, _: &[f32], progress: Progress) -> Result<(), SinkError> {
        assert!((0.0..100.0).contains(&progress.percent()));
        self.0 += 1;
        if self.0 > 1 { Err(SinkError::Stopped) } else { Ok(()) }
    }
}

/// Rule: a render stops when its sink does.
#[test]
fn a_render_stops_when_it_is_told() {
    let midi = Midi::default().note(0, 100 * Q, 0, 60, 100).bytes(100 * Q);
    let mut once = OneShotSink(0);
    let score = Score::read(&midi).unwrap();
    let stopped =
        render(&score, font(), RenderSettings::default(), RenderLimits::default(), &mut once);
    assert!(matches!(stopped, Err(RenderError::Sink(SinkError::Stopped))));
    assert_eq!(once.0, 2);
}
