//! The tool table: the one place where a native tool is defined. A row gives its name, request,
//! response, timing, whether it makes a job, who may call it, how it is audited and what it does.
//!
//! Adding a native tool is one row here, its two types in [`crate::request`] and its handler.

/// Hands every row of the tool table to the macro named.
#[macro_export]
macro_rules! tool_table {
    ($callback:ident) => {
        $callback! {
            Ping(PingRequest) -> PongResponse {
                name: "ping", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Answers at once with the daemon's uptime and version.",
            }
            ListTools(ListToolsRequest) -> ToolsListResponse {
                name: "list_tools", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Lists the tools you may call, with the schema of their input.",
            }
            ConfigGet(ConfigGetRequest) -> ConfigValueResponse {
                name: "config_get", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Reads the configuration: all of it, a section or one key. Secrets are masked.",
            }
            CasStore(CasStoreRequest) -> CasStoredResponse {
                name: "cas_store", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Stores content and answers with its hash. Large content goes in pieces: the same upload_id, rising offset, and last on the final piece.",
            }
            CasGet(CasGetRequest) -> CasContentResponse {
                name: "cas_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads stored content by its hash, whole or a range of it.",
            }
            CasInspect(CasInspectRequest) -> CasInspectedResponse {
                name: "cas_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells whether content with this hash is stored, its size, type and a short preview.",
            }
            CasUploadFile(CasUploadFileRequest) -> CasStoredResponse {
                name: "cas_upload_file", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Stores a file of the daemon's machine, which must lie in an allowed directory (files.roots).",
            }
            CasStats(CasStatsRequest) -> CasStatsResponse {
                name: "cas_stats", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Counts the stored content.",
            }
            ArtifactUpload(ArtifactUploadRequest) -> ArtifactCreatedResponse {
                name: "artifact_upload", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Stores a file of the daemon's machine and makes an artifact of it.",
            }
            ArtifactCreate(ArtifactCreateRequest) -> ArtifactCreatedResponse {
                name: "artifact_create", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Makes an artifact of stored content, with tags, creator and lineage.",
            }
            ArtifactGet(ArtifactGetRequest) -> ArtifactInfoResponse {
                name: "artifact_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells everything about one artifact, its annotations included.",
            }
            ArtifactList(ArtifactListRequest) -> ArtifactListResponse {
                name: "artifact_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists artifacts, newest first, by tag or creator if given.",
            }
            AddAnnotation(AddAnnotationRequest) -> AnnotationAddedResponse {
                name: "add_annotation", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Adds a remark to an artifact.",
            }
            JobStatus(JobStatusRequest) -> JobStatusResponse {
                name: "job_status", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells where a job stands, with its result or error once it has ended.",
            }
            JobList(JobListRequest) -> JobListResponse {
                name: "job_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists jobs, newest first, and counts them by state.",
            }
            JobPoll(JobPollRequest) -> JobPollResponse {
                name: "job_poll", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Waits until any or all of some jobs have ended, at most 30 seconds.",
            }
            JobCancel(JobCancelRequest) -> JobCancelledResponse {
                name: "job_cancel", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Cancels a job and answers when the work has stopped.",
            }
            JobSleep(JobSleepRequest) -> SleptResponse {
                name: "job_sleep", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Sleeps, with progress: for trying jobs out.",
            }
            EventPoll(EventPollRequest) -> EventsResponse {
                name: "event_poll", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads events after a cursor, waiting for the first if asked.",
            }
            CallWhy(CallWhyRequest) -> CallExplainedResponse {
                name: "call_why", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Explains a recent call by its call id, request id or job id: the rule that admitted it, its deadline, and how it ended.",
            }
            AbcParse(AbcParseRequest) -> AbcParsedResponse {
                name: "abc_parse", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Reads a tune or a tunebook in ABC notation and tells what is in it.",
            }
            AbcValidate(AbcValidateRequest) -> AbcValidatedResponse {
                name: "abc_validate", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Checks a text in ABC notation: errors and warnings with line, column and what to do.",
            }
            AbcTranspose(AbcTransposeRequest) -> AbcTransposedResponse {
                name: "abc_transpose", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Transposes a text in ABC notation by semitones or to a key, well spelled.",
            }
            AbcToMidi(AbcToMidiRequest) -> AbcConvertedResponse {
                name: "abc_to_midi", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Makes a MIDI file of a tune in ABC notation, with its repeats, and an artifact of it.",
            }
            TokenCreate(TokenCreateRequest) -> TokenCreatedResponse {
                name: "token_create", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Makes a token. Its secret is in this answer and nowhere else.",
            }
            TokenList(TokenListRequest) -> TokenListResponse {
                name: "token_list", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Lists the tokens, without their secrets.",
            }
            TokenRevoke(TokenRevokeRequest) -> AckResponse {
                name: "token_revoke", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Ends a token: its open connections close, and no further call is accepted.",
            }
            SoundfontInspect(SoundfontInspectRequest) -> SoundfontInfoResponse {
                name: "soundfont_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the presets of a SoundFont, and what its drum kits play.",
            }
            SoundfontPresetInspect(SoundfontPresetInspectRequest) -> SoundfontPresetInfoResponse {
                name: "soundfont_preset_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Shows the regions of a preset of a SoundFont: which sample plays for which keys and velocities.",
            }
            MidiToWav(MidiToWavRequest) -> ArtifactsCreatedResponse {
                name: "midi_to_wav", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Renders a MIDI file with a SoundFont to a WAV file, and sends the sound while it renders.",
            }
            BeatthisAnalyze(BeatthisAnalyzeRequest) -> BeatsAnalyzedResponse {
                name: "beatthis_analyze", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Finds the beats, downbeats and tempo of a sound.",
            }
            ClapAnalyze(ClapAnalyzeRequest) -> ClapAnalyzedResponse {
                name: "clap_analyze", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Describes a sound: a vector to compare it by, loudness, key, onsets, its colour, and how alike two sounds are.",
            }
            OrpheusGenerate(OrpheusGenerateRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_generate", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Makes new music as MIDI files: by the Orpheus service, or by an embedded statistical model of note sequences.",
            }
            OrpheusGenerateSeeded(OrpheusGenerateSeededRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_generate_seeded", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Makes new music that starts as a MIDI file does and keeps its manner.",
            }
            OrpheusContinue(OrpheusContinueRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_continue", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Continues a MIDI file.",
            }
            OrpheusBridge(OrpheusBridgeRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_bridge", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Makes music that leads from one MIDI file to another.",
            }
            OrpheusLoops(OrpheusLoopsRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_loops", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Makes music that can be played round and round.",
            }
            OrpheusClassify(OrpheusClassifyRequest) -> OrpheusClassifiedResponse {
                name: "orpheus_classify", timing: AsyncShort, job: true, level: Read, audit: Each,
                about: "Judges what a MIDI file seems to be: made by a human or an AI by the service, performed or programmed by the embedded method.",
            }
            MusicgenGenerate(MusicgenGenerateRequest) -> ArtifactsCreatedResponse {
                name: "musicgen_generate", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Makes sound from a description in words, by the MusicGen service.",
            }
            YueGenerate(YueGenerateRequest) -> ArtifactsCreatedResponse {
                name: "yue_generate", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Makes a song from lyrics and a genre, by the YuE service.",
            }
            ProjectCreate(ProjectCreateRequest) -> ProjectResponse {
                name: "project_create", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Makes a project: a name for sessions that belong together, with their agent, limits and keys.",
            }
            ProjectList(ProjectListRequest) -> ProjectListResponse {
                name: "project_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the projects you may see, newest first.",
            }
            ProjectGet(ProjectGetRequest) -> ProjectResponse {
                name: "project_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells everything about one project.",
            }
            ProjectUpdate(ProjectUpdateRequest) -> ProjectResponse {
                name: "project_update", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Changes what is answered when the agents of a project ask for permission. Sessions that live follow at their next question.",
            }
            ProjectDelete(ProjectDeleteRequest) -> AckResponse {
                name: "project_delete", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes a project with its workspaces and past sessions. Sessions that live must be ended first.",
            }
            WorkspaceList(WorkspaceListRequest) -> WorkspaceListResponse {
                name: "workspace_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the workspaces of a project, newest first.",
            }
            WorkspaceDelete(WorkspaceDeleteRequest) -> AckResponse {
                name: "workspace_delete", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes a workspace, its files and its past sessions. Sessions that live in it must be ended first.",
            }
            WorkspaceGet(WorkspaceGetRequest) -> WorkspaceContentResponse {
                name: "workspace_get", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Gets a file of a workspace, lists a directory of it, or makes an artifact of it: a tar archive. Symbolic links are shown, never followed.",
            }
            WorkspacePut(WorkspacePutRequest) -> AckResponse {
                name: "workspace_put", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Writes a file into a workspace, or all files of a tar archive, with the directories they are in. Symbolic links are replaced, never followed.",
            }
            WorkspaceDiff(WorkspaceDiffRequest) -> WorkspaceDiffResponse {
                name: "workspace_diff", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Shows what changed in a workspace since before its first agent was started: a unified diff, and a list. What .gitignore named then is left out.",
            }
            ContainerStart(ContainerStartRequest) -> ContainerStateResponse {
                name: "container_start", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Starts the container of a project: a sandbox beside its sessions, with a directory of its own that is kept. One that runs already is left as it is.",
            }
            ContainerStop(ContainerStopRequest) -> ContainerStateResponse {
                name: "container_stop", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Stops the container of a project, with everything that runs in it. Its directory is kept.",
            }
            ContainerLogs(ContainerLogsRequest) -> ContainerLogsResponse {
                name: "container_logs", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Shows the last lines that the program of a project's container wrote.",
            }
            ContainerExec(ContainerExecRequest) -> ExecResultResponse {
                name: "container_exec", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Runs a command in the container of a project, and answers with its exit code and what it wrote. With a workspace, or without Docker, the command gets a sandbox of its own.",
            }
            ImageRebuild(ImageRebuildRequest) -> ImageRebuiltResponse {
                name: "image_rebuild", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Builds an image of the configuration anew, for Docker, and sends the lines of its log.",
            }
            SessionSpawn(SessionSpawnRequest) -> SessionResponse {
                name: "session_spawn", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Starts an agent in a workspace of a project. You may offer it tools of your own.",
            }
            SessionMessage(SessionMessageRequest) -> SessionMessagedResponse {
                name: "session_message", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Sends an agent a message, and starts one if none is named. You may offer it tools of your own.",
            }
            SessionEvents(SessionEventsRequest) -> SessionEventsResponse {
                name: "session_events", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads what happened in a session after an index, and waits for it if asked.",
            }
            SessionList(SessionListRequest) -> SessionListResponse {
                name: "session_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists sessions, newest first, of a project or in a state if given.",
            }
            SessionGet(SessionGetRequest) -> SessionResponse {
                name: "session_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells where a session stands.",
            }
            SessionEnd(SessionEndRequest) -> AckResponse {
                name: "session_end", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Ends a session: its agent stops, its key and its callers' tools are gone. Its events stay.",
            }
            SessionNetwork(SessionNetworkRequest) -> SessionResponse {
                name: "session_network", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Changes what a live session may reach. Connections that are no longer allowed are closed. More than before needs admin.",
            }
            SessionCleanup(SessionCleanupRequest) -> CleanedResponse {
                name: "session_cleanup", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes sessions that are over, with their events.",
            }
            SessionOpen(SessionOpenRequest) -> SessionOpenedResponse {
                name: "session_open", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Opens a session for an agent that runs elsewhere, at a URL with a token of its own. You may offer it tools of your own.",
            }
            CallerToolResponse(CallerToolResponseRequest) -> AckResponse {
                name: "caller_tool_response", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Answers an agent's call of a tool you offered it.",
            }
            CallerToolProgress(CallerToolProgressRequest) -> AckResponse {
                name: "caller_tool_progress", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Tells how far an agent's call of a tool you offered it is.",
            }
            CallerToolRequests(CallerToolRequestsRequest) -> CallerToolRequestsResponse {
                name: "caller_tool_requests", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Lists the agents' calls of tools you offered that wait for your answer, and waits for one if asked.",
            }
            ConfigLimits(ConfigLimitsRequest) -> LimitsResponse {
                name: "config_limits", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Tells the limits of a project's sessions and what remains of them.",
            }
        }
    };
}

/// Hands every response type, with its variant and its tag on the wire, to the macro named.
#[macro_export]
macro_rules! response_table {
    ($callback:ident) => {
        $callback! {
            /// Of `ping`.
            Pong(PongResponse) = "pong";
            /// Of `list_tools`.
            ToolsList(ToolsListResponse) = "tools_list";
            /// Of `config_get`.
            ConfigValue(ConfigValueResponse) = "config_value";
            /// Of `cas_store` and `cas_upload_file`.
            CasStored(CasStoredResponse) = "cas_stored";
            /// Of `cas_get`.
            CasContent(CasContentResponse) = "cas_content";
            /// Of `cas_inspect`.
            CasInspected(CasInspectedResponse) = "cas_inspected";
            /// Of `cas_stats`.
            CasStats(CasStatsResponse) = "cas_stats";
            /// Of `artifact_upload` and `artifact_create`.
            ArtifactCreated(ArtifactCreatedResponse) = "artifact_created";
            /// Of `artifact_get`.
            ArtifactInfo(ArtifactInfoResponse) = "artifact_info";
            /// Of `artifact_list`.
            ArtifactList(ArtifactListResponse) = "artifact_list";
            /// Of `add_annotation`.
            AnnotationAdded(AnnotationAddedResponse) = "annotation_added";
            /// Of `job_status`.
            JobStatus(JobStatusResponse) = "job_status";
            /// Of `job_list`.
            JobList(JobListResponse) = "job_list";
            /// Of `job_poll`.
            JobPollResult(JobPollResponse) = "job_poll_result";
            /// Of `job_cancel`.
            JobCancelled(JobCancelledResponse) = "job_cancelled";
            /// Of `job_sleep`.
            Slept(SleptResponse) = "slept";
            /// Of `event_poll`.
            Events(EventsResponse) = "events";
            /// Of `call_why`.
            CallExplained(CallExplainedResponse) = "call_explained";
            /// Of `abc_parse`.
            AbcParsed(AbcParsedResponse) = "abc_parsed";
            /// Of `abc_validate`.
            AbcValidated(AbcValidatedResponse) = "abc_validated";
            /// Of `abc_transpose`.
            AbcTransposed(AbcTransposedResponse) = "abc_transposed";
            /// Of `abc_to_midi`.
            AbcConverted(AbcConvertedResponse) = "abc_converted";
            /// Of `token_create`.
            TokenCreated(TokenCreatedResponse) = "token_created";
            /// Of `token_list`.
            TokenList(TokenListResponse) = "token_list";
            /// Of `soundfont_inspect`.
            SoundfontInfo(SoundfontInfoResponse) = "soundfont_info";
            /// Of `soundfont_preset_inspect`.
            SoundfontPresetInfo(SoundfontPresetInfoResponse) = "soundfont_preset_info";
            /// Of `midi_to_wav` and of tools that make music.
            ArtifactsCreated(ArtifactsCreatedResponse) = "artifacts_created";
            /// Of `beatthis_analyze`.
            BeatsAnalyzed(BeatsAnalyzedResponse) = "beats_analyzed";
            /// Of `clap_analyze`.
            ClapAnalyzed(ClapAnalyzedResponse) = "clap_analyzed";
            /// Of `orpheus_classify`.
            OrpheusClassified(OrpheusClassifiedResponse) = "orpheus_classified";
            /// Of `project_create`, `project_get` and `project_update`.
            Project(ProjectResponse) = "project";
            /// Of `project_list`.
            ProjectList(ProjectListResponse) = "project_list";
            /// Of `workspace_list`.
            WorkspaceList(WorkspaceListResponse) = "workspace_list";
            /// Of `workspace_get`.
            WorkspaceContent(WorkspaceContentResponse) = "workspace_content";
            /// Of `workspace_diff`.
            WorkspaceDiff(WorkspaceDiffResponse) = "workspace_diff";
            /// Of `container_start` and `container_stop`.
            ContainerState(ContainerStateResponse) = "container_state";
            /// Of `container_logs`.
            ContainerLogs(ContainerLogsResponse) = "container_logs";
            /// Of `container_exec`.
            ExecResult(ExecResultResponse) = "exec_result";
            /// Of `image_rebuild`.
            ImageRebuilt(ImageRebuiltResponse) = "image_rebuilt";
            /// Of `session_spawn`, `session_get` and `session_network`.
            Session(SessionResponse) = "session";
            /// Of `session_message`.
            SessionMessaged(SessionMessagedResponse) = "session_messaged";
            /// Of `session_events`.
            SessionEvents(SessionEventsResponse) = "session_events";
            /// Of `session_list`.
            SessionList(SessionListResponse) = "session_list";
            /// Of `session_cleanup`.
            Cleaned(CleanedResponse) = "cleaned";
            /// Of `session_open`.
            SessionOpened(SessionOpenedResponse) = "session_opened";
            /// Of `caller_tool_requests`.
            CallerToolRequests(CallerToolRequestsResponse) = "caller_tool_requests";
            /// Of `config_limits`.
            Limits(LimitsResponse) = "limits";
            /// Of tools that have nothing more to say.
            Ack(AckResponse) = "ack";
        }
    };
}
