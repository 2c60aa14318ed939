/* A server without Python or torch: answers on a Unix socket until it is told to stop. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void stop(int signal) {
    (void)signal;
    _exit(0);
}

int main(int count, char **words) {
    static const char answer[] = "hello from C\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (count != 2) return 7;
    signal(SIGTERM, stop);
    strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 1)) {
        perror(words[1]);
        return 1;
    }
    for (;;) {
        int client = accept(server, 0, 0);
        if (write(client, answer, sizeof answer - 1) < 0) perror("write");
        close(client);
    }
}
