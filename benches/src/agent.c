/* The smallest agent, linked statically by boxed.rs: for each input line it starts the
   program inside, which its arguments name, shakes hands, lists the tools, and reports them. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
    "\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
static const char list[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

static int listed(char **inside) {
  int in[2], out[2];
  char line[65536];
  if (pipe(in) || pipe(out)) return 0;
  pid_t child = fork();
  if (child == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execv(inside[0], inside);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  FILE *said = fdopen(out[0], "r");
  int is_listed = write(in[1], hello, strlen(hello)) > 0 && fgets(line, sizeof line, said) &&
                  write(in[1], list, strlen(list)) > 0 && fgets(line, sizeof line, said) &&
                  strstr(line, "\"tools\"");
  close(in[1]);
  fclose(said);
  waitpid(child, NULL, 0);
  return is_listed;
}

int main(int argc, char **argv) {
  char line[4096];
  while (argc > 1 && fgets(line, sizeof line, stdin)) {
    puts(listed(argv + 1) ? "{\"type\":\"message\",\"text\":\"listed\"}"
                          : "{\"type\":\"error\",\"text\":\"no tools\"}");
    puts("{\"type\":\"done\"}");
    fflush(stdout);
  }
  return 0;
}
