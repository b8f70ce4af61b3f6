{
  "job": {
    "web": {
      "type": "service",
    }
  }
}
