#include <ctype.h>
#include <stdio.h>

int main(void) {
    int c, words = 0, inside = 0;
    while ((c = getchar()) != EOF) {
        if (!isspace(c) && !inside) words++;
        inside = !isspace(c);
    }
    printf("%d\n", words);
    return 0;
}
