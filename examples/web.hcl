# A small web server: the job to start with.
#
#   kafila job run web.hcl          start it, or change it
#   kafila job status web           see where it runs, and the id of its allocation
#   kafila alloc status ID          see its port, and what happened to it
#   kafila job stop web             stop it

job "web" {
  # A service is meant to run for ever: when it ends it is started again.
  # (It is the default; "batch" jobs are meant to end.)
  type = "service"

  # A group is placed on one machine as a unit; its tasks share ports and files.
  group "server" {
    # How many of these to run. Change it and run the job again to scale.
    count = 1

    network {
      # A port of the machine's that nobody else has, chosen by the scheduler.
      # The task finds its number as NOMAD_PORT_http.
      port "http" {}
    }

    # How a new version replaces the old one: one at a time, each of which has to run for a second
    # before it counts as healthy. The default is ten seconds.
    update {
      max_parallel     = 1
      min_healthy_time = "1s"
      healthy_deadline = "30s"
    }

    task "http" {
      # raw_exec starts a program of the machine's, without a container around it.
      driver = "raw_exec"

      config {
        command = "/bin/sh"

        # Whatever the machine has: python3, or else the perl that every Debian comes with.
        # "exec" replaces the shell by the server, so that the server itself gets the signal when
        # the job is stopped. Names such as NOMAD_PORT_http are filled in on the machine.
        args = ["-c", <<-EOT
          cd "${NOMAD_TASK_DIR}" || exit 1
          echo "Hello from allocation ${NOMAD_ALLOC_INDEX} of job ${NOMAD_JOB_NAME}" > index.html
          echo "listening on 127.0.0.1:${NOMAD_PORT_http}"
          if command -v python3 > /dev/null; then
            exec python3 -u -m http.server --bind 127.0.0.1 "${NOMAD_PORT_http}"
          fi
          exec perl -MIO::Socket::INET -e '
            $| = 1;
            $SIG{PIPE} = "IGNORE";
            my $server = IO::Socket::INET->new(
              LocalAddr => "127.0.0.1", LocalPort => $ENV{NOMAD_PORT_http},
              Listen => 16, ReuseAddr => 1,
            ) or die "cannot listen: $!";
            open(my $file, "<", "index.html") or die "cannot read index.html: $!";
            my $page = join("", <$file>);
            while (my $client = $server->accept) {
              my $request = <$client>;
              print "request: $request" if defined $request;
              print $client "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n",
                "Content-Length: ", length($page), "\r\n\r\n", $page;
              close($client);
            }'
        EOT
        ]
      }

      # What the task may use, cpu in MHz and memory in MB. The scheduler fills machines with it.
      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
