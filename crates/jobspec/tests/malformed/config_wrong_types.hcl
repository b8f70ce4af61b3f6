job "web" {
  group "server" {
    task "http" {
      driver = "mock_driver"

      config {
        run_for   = "ten seconds"
        exit_code = "one"
      }
    }
  }
}
