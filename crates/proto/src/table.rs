//! The tool table: the only place where a native tool is defined. A row holds its name, request,
//! response, timing, scope, audit class and description, whether it creates a job, and which service
//! does its work if the daemon does not.
//!
//! Adding a native tool takes one row here, its two types in [`crate::request`] and its handler.

/// Passes every row of the tool table to the named macro.
#[macro_export]
macro_rules! tool_table {
    ($callback:ident) => {
        $callback! {
            Ping(PingRequest) -> PongResponse {
                name: "ping", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Returns the daemon's uptime and version immediately.",
            }
            ListTools(ListToolsRequest) -> ToolsListResponse {
                name: "list_tools", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Lists the tools you may call, with their input schemas.",
            }
            ConfigGet(ConfigGetRequest) -> ConfigValueResponse {
                name: "config_get", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Reads the configuration: all of it, one section or one key. Secrets are masked.",
            }
            CasStore(CasStoreRequest) -> CasStoredResponse {
                name: "cas_store", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Stores content and returns its hash. Send large content in pieces: the same upload_id, a rising offset, and last on the final piece.",
            }
            CasGet(CasGetRequest) -> CasContentResponse {
                name: "cas_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads stored content by its hash, in full or as a byte range.",
            }
            CasInspect(CasInspectRequest) -> CasInspectedResponse {
                name: "cas_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reports whether content with this hash is stored, with its size, type and a short preview.",
            }
            CasUploadFile(CasUploadFileRequest) -> CasStoredResponse {
                name: "cas_upload_file", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Stores a file from the daemon's machine. The file must be in an allowed directory (files.roots).",
            }
            CasStats(CasStatsRequest) -> CasStatsResponse {
                name: "cas_stats", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns the number of stored blobs and their total size.",
            }
            ArtifactUpload(ArtifactUploadRequest) -> ArtifactCreatedResponse {
                name: "artifact_upload", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Stores a file from the daemon's machine and creates an artifact from it.",
            }
            ArtifactCreate(ArtifactCreateRequest) -> ArtifactCreatedResponse {
                name: "artifact_create", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Creates an artifact from stored content, with tags, creator and lineage.",
            }
            ArtifactGet(ArtifactGetRequest) -> ArtifactInfoResponse {
                name: "artifact_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns everything about one artifact, including its annotations.",
            }
            ArtifactList(ArtifactListRequest) -> ArtifactListResponse {
                name: "artifact_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists artifacts, newest first, optionally filtered by tag or creator.",
            }
            AddAnnotation(AddAnnotationRequest) -> AnnotationAddedResponse {
                name: "add_annotation", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Adds an annotation to an artifact.",
            }
            GraphBind(GraphBindRequest) -> GraphIdentityResponse {
                name: "graph_bind", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Creates an identity of a device, instrument or program under an id of your choice, or adds hints to it.",
            }
            GraphTag(GraphTagRequest) -> GraphTagsResponse {
                name: "graph_tag", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Adds a tag to an identity and returns all its tags.",
            }
            GraphConnect(GraphConnectRequest) -> GraphConnectionResponse {
                name: "graph_connect", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Records that a port of one identity is connected to a port of another. A repeat returns the same connection.",
            }
            GraphFind(GraphFindRequest) -> GraphIdentitiesResponse {
                name: "graph_find", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Finds identities by name, tag or hints, newest first.",
            }
            GraphQuery(GraphQueryRequest) -> GraphQueryResponse {
                name: "graph_query", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Runs one SELECT in the SQL of SQLite over views of what you may see: artifacts, their sources, tags and annotations, jobs, sessions, identities and the timeline. `SELECT * FROM help` lists the views and their columns.",
            }
            GraphContext(GraphContextRequest) -> GraphContextResponse {
                name: "graph_context", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Describes what was made, newest first: by whom, from what, with which remarks, and what failed or waits. Call it first to find earlier work again.",
            }
            JobStatus(JobStatusRequest) -> JobStatusResponse {
                name: "job_status", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns the state of a job, with its result or error once it has ended.",
            }
            JobList(JobListRequest) -> JobListResponse {
                name: "job_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists jobs, newest first, and counts them by state.",
            }
            JobPoll(JobPollRequest) -> JobPollResponse {
                name: "job_poll", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Waits until any or all of the given jobs have ended, for at most 30 seconds.",
            }
            JobCancel(JobCancelRequest) -> JobCancelledResponse {
                name: "job_cancel", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Cancels a job and answers once its work has stopped.",
            }
            JobSleep(JobSleepRequest) -> SleptResponse {
                name: "job_sleep", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Sleeps and reports progress: for trying out jobs.",
            }
            EventPoll(EventPollRequest) -> EventsResponse {
                name: "event_poll", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads events after a cursor, and optionally waits for the first one.",
            }
            CallWhy(CallWhyRequest) -> CallExplainedResponse {
                name: "call_why", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Explains a recent call by its call id, request id or job id: the rule that admitted it, its deadline, and how it ended.",
            }
            AbcParse(AbcParseRequest) -> AbcParsedResponse {
                name: "abc_parse", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Parses a tune or a tunebook in ABC notation and describes its contents.",
            }
            AbcValidate(AbcValidateRequest) -> AbcValidatedResponse {
                name: "abc_validate", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Checks a text in ABC notation and returns errors and warnings, each with its line, its column and a suggested fix.",
            }
            AbcTranspose(AbcTransposeRequest) -> AbcTransposedResponse {
                name: "abc_transpose", timing: Sync, job: false, level: Read, audit: Counted,
                about: "Transposes a text in ABC notation by semitones or to a key, with correct note spelling.",
            }
            AbcToMidi(AbcToMidiRequest) -> AbcConvertedResponse {
                name: "abc_to_midi", timing: AsyncShort, job: true, level: Write, audit: Each,
                about: "Converts a tune in ABC notation to a MIDI file, with its repeats, and stores it as an artifact.",
            }
            TokenCreate(TokenCreateRequest) -> TokenCreatedResponse {
                name: "token_create", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Creates a token. Only this answer contains its secret.",
            }
            TokenList(TokenListRequest) -> TokenListResponse {
                name: "token_list", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Lists the tokens, without their secrets.",
            }
            TokenRevoke(TokenRevokeRequest) -> AckResponse {
                name: "token_revoke", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Revokes a token: its open connections are closed, and no further call is accepted.",
            }
            SoundfontInspect(SoundfontInspectRequest) -> SoundfontInfoResponse {
                name: "soundfont_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the presets of a SoundFont, and the sounds of its drum kits.",
            }
            SoundfontPresetInspect(SoundfontPresetInspectRequest) -> SoundfontPresetInfoResponse {
                name: "soundfont_preset_inspect", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the regions of a SoundFont preset: which sample plays for which keys and velocities.",
            }
            MidiToWav(MidiToWavRequest) -> ArtifactsCreatedResponse {
                name: "midi_to_wav", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Renders a MIDI file with a SoundFont to a WAV file, and streams the audio while it renders.",
            }
            BeatthisAnalyze(BeatthisAnalyzeRequest) -> BeatsAnalyzedResponse {
                name: "beatthis_analyze", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Finds the beats, downbeats and tempo of an audio file.",
            }
            ClapAnalyze(ClapAnalyzeRequest) -> ClapAnalyzedResponse {
                name: "clap_analyze", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Analyzes an audio file: an embedding vector, loudness, key, onsets, timbre, and the similarity of two files.",
            }
            OrpheusGenerate(OrpheusGenerateRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_generate", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Generates new music as MIDI files, with the Orpheus service or an embedded statistical model of note sequences.",
            }
            OrpheusGenerateSeeded(OrpheusGenerateSeededRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_generate_seeded", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Generates new music that starts like a given MIDI file and keeps its style.",
            }
            OrpheusContinue(OrpheusContinueRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_continue", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Continues a MIDI file.",
            }
            OrpheusBridge(OrpheusBridgeRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_bridge", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Generates music that leads from one MIDI file to another.",
            }
            OrpheusLoops(OrpheusLoopsRequest) -> ArtifactsCreatedResponse {
                name: "orpheus_loops", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Generates music that can be looped.",
            }
            OrpheusClassify(OrpheusClassifyRequest) -> OrpheusClassifiedResponse {
                name: "orpheus_classify", timing: AsyncShort, job: true, level: Read, audit: Each,
                about: "Classifies a MIDI file: the Orpheus service estimates whether a human or an AI composed it, the embedded method whether it was performed or programmed.",
            }
            MusicgenGenerate(MusicgenGenerateRequest) -> ArtifactsCreatedResponse {
                name: "musicgen_generate", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Generates audio from a text description, with the MusicGen service.",
            }
            YueGenerate(YueGenerateRequest) -> ArtifactsCreatedResponse {
                name: "yue_generate", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Generates a song from lyrics and a genre, with the YuE service.",
            }
            GardenStatus(GardenStatusRequest) -> GardenStatusResponse {
                name: "garden_status", timing: AsyncShort, job: false, level: Read, audit: Each, service: $crate::garden::SERVICE,
                about: "Returns what the garden is doing: transport, position, tempo, audio device and counters.",
            }
            GardenPlay(GardenPlayRequest) -> AckResponse {
                name: "garden_play", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Plays the timeline from its position.",
            }
            GardenPause(GardenPauseRequest) -> AckResponse {
                name: "garden_pause", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Pauses playback; playing goes on from the same position.",
            }
            GardenStop(GardenStopRequest) -> AckResponse {
                name: "garden_stop", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Stops playback and goes back to where it began.",
            }
            GardenEmergencyPause(GardenEmergencyPauseRequest) -> AckResponse {
                name: "garden_emergency_pause", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::CONTROL_SERVICE,
                about: "Silences the garden before any other command, without waiting for a beat.",
            }
            GardenSeek(GardenSeekRequest) -> AckResponse {
                name: "garden_seek", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Moves the playback position to a beat.",
            }
            GardenSetTempo(GardenSetTempoRequest) -> AckResponse {
                name: "garden_set_tempo", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Sets the tempo, and optionally the time signature, from a beat on.",
            }
            GardenGetRegions(GardenGetRegionsRequest) -> GardenRegionsResponse {
                name: "garden_get_regions", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the regions of the timeline that overlap a range. Of regions that you may not see, only their place is listed.",
            }
            GardenCreateRegion(GardenCreateRegionRequest) -> GardenRegionCreatedResponse {
                name: "garden_create_region", timing: AsyncShort, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Places audio or MIDI on the timeline, by artifact id or content hash.",
            }
            GardenMoveRegion(GardenMoveRegionRequest) -> AckResponse {
                name: "garden_move_region", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Moves a region to another beat.",
            }
            GardenDeleteRegion(GardenDeleteRegionRequest) -> AckResponse {
                name: "garden_delete_region", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Removes a region from the timeline. Its content is kept.",
            }
            GardenSetLoop(GardenSetLoopRequest) -> AckResponse {
                name: "garden_set_loop", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Plays a part of the timeline again and again, or ends that.",
            }
            GardenApprove(GardenApproveRequest) -> AckResponse {
                name: "garden_approve", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Lets a region be played that waits for approval.",
            }
            GardenReject(GardenRejectRequest) -> AckResponse {
                name: "garden_reject", timing: FireAndForget, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Rejects the content of a region: it is never heard.",
            }
            GardenExport(GardenExportRequest) -> ArtifactsCreatedResponse {
                name: "garden_export", timing: AsyncMedium, job: true, level: Write, audit: Each, service: $crate::garden::SERVICE,
                about: "Renders the timeline, or a part of it, to an audio file.",
            }
            GardenSettle(GardenSettleRequest) -> GardenSettledResponse {
                name: "garden_settle", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Reports what became of the job that a region waited for: for the garden process.",
            }
            GardenMonitor(GardenMonitorRequest) -> GardenMonitorResponse {
                name: "garden_monitor", timing: AsyncShort, job: false, level: Admin, audit: Counted,
                about: "Passes on what is heard to the listeners of the monitor: for the garden process.",
            }
            GardenTimeline(GardenTimelineRequest) -> GardenTimelineResponse {
                name: "garden_timeline", timing: AsyncShort, job: false, level: Admin, audit: Each,
                about: "Returns the whole timeline: for the garden process.",
            }
            GardenReport(GardenReportRequest) -> AckResponse {
                name: "garden_report", timing: AsyncShort, job: false, level: Admin, audit: Counted,
                about: "Reports what happened in the garden, to be published as events: for the garden process.",
            }
            ProjectCreate(ProjectCreateRequest) -> ProjectResponse {
                name: "project_create", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Creates a project: a group of sessions that share an agent, limits and a session key scope.",
            }
            ProjectList(ProjectListRequest) -> ProjectListResponse {
                name: "project_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the projects you may see, newest first.",
            }
            ProjectGet(ProjectGetRequest) -> ProjectResponse {
                name: "project_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns everything about one project.",
            }
            ProjectUpdate(ProjectUpdateRequest) -> ProjectResponse {
                name: "project_update", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Changes the answers to the permission requests of a project's agents. Live sessions use them from their next request on.",
            }
            ProjectDelete(ProjectDeleteRequest) -> AckResponse {
                name: "project_delete", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes a project with its workspaces and past sessions. End its live sessions first.",
            }
            WorkspaceList(WorkspaceListRequest) -> WorkspaceListResponse {
                name: "workspace_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists the workspaces of a project, newest first.",
            }
            WorkspaceDelete(WorkspaceDeleteRequest) -> AckResponse {
                name: "workspace_delete", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes a workspace, its files and its past sessions. End its live sessions first.",
            }
            WorkspaceGet(WorkspaceGetRequest) -> WorkspaceContentResponse {
                name: "workspace_get", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Reads a file of a workspace, lists a directory, or archives a directory as a tar artifact. Symbolic links are reported, never followed.",
            }
            WorkspacePut(WorkspacePutRequest) -> AckResponse {
                name: "workspace_put", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Writes a file, or all files of a tar archive, into a workspace, and creates their directories. Symbolic links are replaced, never followed.",
            }
            WorkspaceDiff(WorkspaceDiffRequest) -> WorkspaceDiffResponse {
                name: "workspace_diff", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Returns the changes in a workspace since just before its first agent started, as a unified diff and a list. Files that .gitignore excluded at that time are left out.",
            }
            ContainerStart(ContainerStartRequest) -> ContainerStateResponse {
                name: "container_start", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Starts the container of a project: a sandbox beside its sessions, with its own persistent directory. A running container is left as it is.",
            }
            ContainerStop(ContainerStopRequest) -> ContainerStateResponse {
                name: "container_stop", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Stops the container of a project, with everything that runs in it. Its directory is kept.",
            }
            ContainerLogs(ContainerLogsRequest) -> ContainerLogsResponse {
                name: "container_logs", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Returns the last lines of output of the program in a project's container.",
            }
            ContainerExec(ContainerExecRequest) -> ExecResultResponse {
                name: "container_exec", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Runs a command in the container of a project, and returns its exit code and output. With a workspace, or without Docker, the command runs in a sandbox of its own.",
            }
            ImageRebuild(ImageRebuildRequest) -> ImageRebuiltResponse {
                name: "image_rebuild", timing: AsyncLong, job: true, level: Write, audit: Each,
                about: "Rebuilds a configured Docker image, and streams the build log.",
            }
            SessionSpawn(SessionSpawnRequest) -> SessionResponse {
                name: "session_spawn", timing: AsyncMedium, job: true, level: Write, audit: Each,
                about: "Starts an agent in a workspace of a project. You can offer it tools of your own.",
            }
            SessionMessage(SessionMessageRequest) -> SessionMessagedResponse {
                name: "session_message", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Sends a message to an agent, and starts one if no session is given. You can offer it tools of your own.",
            }
            SessionEvents(SessionEventsRequest) -> SessionEventsResponse {
                name: "session_events", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Reads the events of a session after an index, and optionally waits for new ones.",
            }
            SessionList(SessionListRequest) -> SessionListResponse {
                name: "session_list", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Lists sessions, newest first, optionally filtered by project or state.",
            }
            SessionGet(SessionGetRequest) -> SessionResponse {
                name: "session_get", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns the state of a session.",
            }
            SessionEnd(SessionEndRequest) -> AckResponse {
                name: "session_end", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Ends a session: stops its agent and removes its session key and caller tools. Its events are kept.",
            }
            SessionNetwork(SessionNetworkRequest) -> SessionResponse {
                name: "session_network", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Changes the network policy of a live session. Connections that are no longer allowed are closed. Widening the policy needs admin.",
            }
            SessionCleanup(SessionCleanupRequest) -> CleanedResponse {
                name: "session_cleanup", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Deletes sessions that are no longer live, with their events.",
            }
            SessionOpen(SessionOpenRequest) -> SessionOpenedResponse {
                name: "session_open", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Opens a session for an agent that runs elsewhere, with its own URL and token. You can offer it tools of your own.",
            }
            CallerToolResponse(CallerToolResponseRequest) -> AckResponse {
                name: "caller_tool_response", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Answers an agent's call to a tool that you offer.",
            }
            CallerToolProgress(CallerToolProgressRequest) -> AckResponse {
                name: "caller_tool_progress", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Reports the progress of an agent's call to a tool that you offer.",
            }
            CallerToolRequests(CallerToolRequestsRequest) -> CallerToolRequestsResponse {
                name: "caller_tool_requests", timing: AsyncShort, job: false, level: Write, audit: Each,
                about: "Lists pending agent calls to tools that you offer, and optionally waits for one.",
            }
            ConfigLimits(ConfigLimitsRequest) -> LimitsResponse {
                name: "config_limits", timing: AsyncShort, job: false, level: Read, audit: Each,
                about: "Returns the limits of a project's sessions and what remains of them.",
            }
        }
    };
}

/// Passes every response type, with its variant and its tag on the wire, to the named macro.
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
            /// Of `graph_bind`.
            GraphIdentity(GraphIdentityResponse) = "graph_identity";
            /// Of `graph_tag`.
            GraphTags(GraphTagsResponse) = "graph_tags";
            /// Of `graph_connect`.
            GraphConnection(GraphConnectionResponse) = "graph_connection";
            /// Of `graph_find`.
            GraphIdentities(GraphIdentitiesResponse) = "graph_identities";
            /// Of `graph_query`.
            GraphQueryResult(GraphQueryResponse) = "graph_query_result";
            /// Of `graph_context`.
            GraphContext(GraphContextResponse) = "graph_context";
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
            /// Of `midi_to_wav` and of tools that generate music.
            ArtifactsCreated(ArtifactsCreatedResponse) = "artifacts_created";
            /// Of `beatthis_analyze`.
            BeatsAnalyzed(BeatsAnalyzedResponse) = "beats_analyzed";
            /// Of `clap_analyze`.
            ClapAnalyzed(ClapAnalyzedResponse) = "clap_analyzed";
            /// Of `orpheus_classify`.
            OrpheusClassified(OrpheusClassifiedResponse) = "orpheus_classified";
            /// Of `garden_status`.
            GardenStatus(GardenStatusResponse) = "garden_status";
            /// Of `garden_get_regions`.
            GardenRegions(GardenRegionsResponse) = "garden_regions";
            /// Of `garden_create_region`.
            GardenRegionCreated(GardenRegionCreatedResponse) = "garden_region_created";
            /// Of `garden_settle`.
            GardenSettled(GardenSettledResponse) = "garden_settled";
            /// Of `garden_monitor`.
            GardenMonitored(GardenMonitorResponse) = "garden_monitored";
            /// Of `garden_timeline`.
            GardenTimeline(GardenTimelineResponse) = "garden_timeline";
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
            /// Of tools that have nothing more to return.
            Ack(AckResponse) = "ack";
        }
    };
}
