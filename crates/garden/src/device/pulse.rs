//! The sound server: PulseAudio, or PipeWire in its place. Its clock drives the callback.

use std::ffi::CString;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pulseaudio::protocol::{self, Command, ProtocolError};

use super::command::to_bytes;
use super::{Device, DeviceError, Format, Stop};
use crate::player::Player;
use crate::sound::CHANNELS;

const NAME: &str = "pulse";

/// How long the server may take to answer while a stream is opened.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// How often a silent server is looked at, to see whether to stop.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// The server keeps this many of our buffers: fewer, and a moment without the processor is heard.
const SERVER_BUFFERS: u32 = 4;
/// The server is lost if it asks for nothing for so long.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The number of the request that opens the stream.
const OPEN_REQUEST: u32 = 2;
/// The number of the request that ends it.
const DRAIN_REQUEST: u32 = 3;

const FRAME_BYTES: usize = CHANNELS * size_of::<f32>();

/// A stream to the server.
#[derive(Debug)]
pub(super) struct Pulse {
    socket: BufReader<UnixStream>,
    version: u16,
    channel: u32,
    /// Bytes that the server waits for.
    requested: usize,
    samples: Vec<f32>,
    bytes: Vec<u8>,
}

impl Pulse {
    pub(super) fn open(format: Format) -> Result<Self, DeviceError> {
        Self::connect(format).map_err(|error| {
            let reason = if let ProtocolError::Io(error) = &error {
                format!("the sound server does not answer: {error}")
            } else {
                error.to_string()
            };
            DeviceError { action: "open", name: NAME.to_owned(), reason }
        })
    }

    fn connect(format: Format) -> Result<Self, ProtocolError> {
        let path = pulseaudio::socket_path_from_env().ok_or_else(|| {
            std::io::Error::new(ErrorKind::NotFound, "there is no socket of a sound server")
        })?;
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(ANSWER_TIME))?;
        socket.set_write_timeout(Some(ANSWER_TIME))?;
        let mut socket = BufReader::new(socket);
        let version = introduce(&mut socket)?;
        let opened = open_stream(&mut socket, version, format)?;
        socket.get_ref().set_read_timeout(Some(LOOK_TIME))?;
        let mut pulse = Self {
            socket,
            version,
            channel: opened.channel,
            requested: opened.requested_bytes as usize,
            samples: Vec::new(),
            bytes: Vec::new(),
        };
        pulse.reserve(opened.buffer_attr.target_length as usize);
        Ok(pulse)
    }

    /// Makes room for a request.
    fn reserve(&mut self, n_bytes: usize) {
        let n_frames = n_bytes / FRAME_BYTES;
        if self.samples.len() < n_frames * CHANNELS {
            self.samples.resize(n_frames * CHANNELS, 0.0);
            self.bytes.resize(n_frames * FRAME_BYTES, 0);
        }
    }

    /// Sends the server what it waits for, in whole frames.
    fn serve(&mut self, player: &mut Player) -> Result<(), ProtocolError> {
        let n_frames = self.requested / FRAME_BYTES;
        if n_frames == 0 {
            return Ok(());
        }
        self.reserve(n_frames * FRAME_BYTES);
        let samples = &mut self.samples[..n_frames * CHANNELS];
        player.fill(samples);
        let bytes = &mut self.bytes[..n_frames * FRAME_BYTES];
        to_bytes(samples, bytes);
        protocol::write_memblock(self.socket.get_mut(), self.channel, bytes, 0)?;
        self.requested -= bytes.len();
        Ok(())
    }

    /// Waits a moment for a message; `false` if none came.
    fn has_message(&mut self) -> Result<bool, ProtocolError> {
        match self.socket.fill_buf() {
            Ok([]) => Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn drive(&mut self, player: &mut Player, stop: &Stop) -> Result<(), ProtocolError> {
        let mut silent = Duration::ZERO;
        while !stop.is_set() {
            self.serve(player)?;
            if !self.has_message()? {
                silent += LOOK_TIME;
                if silent > SILENCE_MAX {
                    let reason = "the sound server asks for no more sound";
                    return Err(std::io::Error::new(ErrorKind::TimedOut, reason).into());
                }
                continue;
            }
            silent = Duration::ZERO;
            let (_, message) = protocol::read_command_message(&mut self.socket, self.version)?;
            self.on_message(&message)?;
        }
        self.drain()
    }

    /// Waits until the server has played what it has.
    fn drain(&mut self) -> Result<(), ProtocolError> {
        let drain = Command::DrainPlaybackStream(self.channel);
        let version = self.version;
        protocol::write_command_message(self.socket.get_mut(), DRAIN_REQUEST, &drain, version)?;
        let start = Instant::now();
        while start.elapsed() < ANSWER_TIME {
            if self.has_message()? {
                let (request, _) = protocol::read_command_message(&mut self.socket, version)?;
                if request == DRAIN_REQUEST {
                    break;
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
    fn on_message(&mut self, message: &Command) -> Result<(), ProtocolError> {
        match message {
            Command::Request(request) if request.channel == self.channel => {
                self.requested += request.length as usize;
                Ok(())
            }
            Command::PlaybackStreamKilled(_) => {
                Err(std::io::Error::other("the sound server closed the stream").into())
            }
            _ => Ok(()),
        }
    }
}

impl Device for Pulse {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError> {
        self.drive(player, stop).map_err(DeviceError::on("play on", NAME))
    }
}

/// Says who we are; returns the version that both speak.
fn introduce(socket: &mut BufReader<UnixStream>) -> Result<u16, ProtocolError> {
    let cookie = pulseaudio::cookie_path_from_env().and_then(|path| std::fs::read(path).ok());
    let auth = protocol::AuthParams {
        version: protocol::MAX_VERSION,
        supports_shm: false,
        supports_memfd: false,
        cookie: cookie.unwrap_or_default(),
    };
    let version = protocol::MAX_VERSION;
    protocol::write_command_message(socket.get_mut(), 0, &Command::Auth(auth), version)?;
    let (_, answer) = protocol::read_reply_message::<protocol::AuthReply>(socket, version)?;
    let version = version.min(answer.version);
    let mut props = protocol::Props::new();
    props.set(protocol::Prop::ApplicationName, c"ringback garden");
    let name = Command::SetClientName(props);
    protocol::write_command_message(socket.get_mut(), 1, &name, version)?;
    protocol::read_reply_message::<protocol::SetClientNameReply>(socket, version)?;
    Ok(version)
}

fn open_stream(
    socket: &mut BufReader<UnixStream>,
    version: u16,
    format: Format,
) -> Result<protocol::CreatePlaybackStreamReply, ProtocolError> {
    let buffer_bytes = format.buffer_frames * FRAME_BYTES as u32;
    let params = protocol::PlaybackStreamParams {
        sample_spec: protocol::SampleSpec {
            format: protocol::SampleFormat::Float32Le,
            channels: CHANNELS as u8,
            sample_rate: format.sample_rate,
        },
        channel_map: protocol::ChannelMap::stereo(),
        cvolume: Some(protocol::ChannelVolume::norm(CHANNELS as u8)),
        sink_name: Some(CString::from(protocol::DEFAULT_SINK)),
        buffer_attr: protocol::stream::BufferAttr {
            max_length: u32::MAX,
            target_length: buffer_bytes * SERVER_BUFFERS,
            pre_buffering: u32::MAX,
            minimum_request_length: buffer_bytes,
            fragment_size: u32::MAX,
        },
        flags: protocol::stream::StreamFlags { adjust_latency: true, ..Default::default() },
        ..Default::default()
    };
    let open = Command::CreatePlaybackStream(params);
    protocol::write_command_message(socket.get_mut(), OPEN_REQUEST, &open, version)?;
    Ok(protocol::read_reply_message::<protocol::CreatePlaybackStreamReply>(socket, version)?.1)
}
