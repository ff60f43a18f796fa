//! The mix and the resampling against those of `sox`.

use crate::support::{CLOSE, RATE, Shop, chord, difference, region};
use ringback_proto::garden::{GardenRegion, Ticks};

/// Rule: a mix equals that of `sox -m` within -90 dB.
#[tokio::test]
async fn a_mix_equals_that_of_sox() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 1.5, 0.4, &[220.0, 333.0, 1234.5]));
    shop.write("b.wav", RATE, &chord(RATE, 1.0, 0.5, &[441.0, 9876.0]));
    shop.write("c.wav", RATE, &chord(RATE, 0.5, 0.2, &[3000.0]));
    shop.sox(&["b.wav", "late.wav", "pad", "24000s"]);
    shop.sox(&["c.wav", "later.wav", "pad", "48000s"]);
    shop.sox(&["-m", "-v", "1", "a.wav", "-v", "0.5", "late.wav", "-v", "1", "later.wav", "m.wav"]);
    let half = 20.0 * 0.5_f32.log10();
    let regions = vec![
        region(1, shop.store("a.wav", "audio/wav"), 0.0),
        GardenRegion { gain_db: half, ..region(2, shop.store("b.wav", "audio/wav"), 0.5) },
        region(3, shop.store("c.wav", "audio/wav"), 1.0),
    ];
    let (played, mixed) = (shop.played(regions).await, shop.read("m.wav"));
    assert!(played.len() >= mixed.len());
    let worst = difference(&played, &mixed, 0..mixed.len());
    assert!(worst < CLOSE, "{worst}");
    assert!(mixed.iter().flatten().any(|sample| sample.abs() > 0.3), "there is something to hear");
}

/// Rule: a fade equals that of `sox` within -90 dB.
#[tokio::test]
async fn a_fade_equals_that_of_sox() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 1.0, 0.5, &[220.0, 3300.0]));
    shop.sox(&["a.wav", "faded.wav", "fade", "t", "12000s", "48000s", "24000s"]);
    let plain = region(1, shop.store("a.wav", "audio/wav"), 0.0);
    let faded = GardenRegion { fade_in: Ticks(240), fade_out: Ticks(480), ..plain };
    let (played, expected) = (shop.played(vec![faded]).await, shop.read("faded.wav"));
    // `sox` computes a fade in steps of its own.
    let worst = difference(&played, &expected, 0..48_000);
    assert!(worst < 2.0 * CLOSE, "{worst}");
}

/// Rule: a 44.1 kHz file keeps its pitch, and resampling equals `sox rate` within -90 dB.
#[tokio::test]
async fn a_file_of_another_rate_equals_that_of_sox() {
    let shop = Shop::new();
    let hertz = [55.0, 440.0, 1000.0, 4186.0, 9000.0];
    shop.write("in.wav", 44_100, &chord(44_100, 1.5, 0.8, &hertz));
    shop.sox(&["in.wav", "out.wav", "rate", "-v", "48000"]);
    let regions = vec![region(1, shop.store("in.wav", "audio/wav"), 0.0)];
    let (played, expected) = (shop.played(regions).await, shop.read("out.wav"));
    // At the ends, both filters ring.
    let worst = difference(&played, &expected, 4000..expected.len() - 4000);
    assert!(worst < CLOSE, "{worst}");
    let exact = chord(RATE, 1.5, 0.8, &hertz);
    let worst = difference(&played, &exact, 4000..exact.len() - 4000);
    assert!(worst < CLOSE, "{worst}");
}
