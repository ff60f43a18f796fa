/* The bare alternative to the program inside: repeats its input. Linked statically by inside.rs. */
#include <unistd.h>

int main(void) {
  char buffer[4096];
  ssize_t n;
  while ((n = read(0, buffer, sizeof buffer)) > 0)
    if (write(1, buffer, (size_t)n) != n) return 1;
  return 0;
}
